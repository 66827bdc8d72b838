// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Keeps what the server says: all workloads by key, and whether server and cluster answer.

import {keyOf} from './words.js';

// silence is how long the server may say nothing: three missed beats.
const silence = 32_000;
const retry = 2_000;

export class Stream {
  workloads = new Map();
  connection = {state: 'Connecting'};
  server = 'Connecting';
  isComplete = false;

  #source;
  #watchdog;
  #listener;

  // listener is called with the keys that changed, null for all.
  constructor(listener) {
    this.#listener = listener;
    this.#open();
  }

  #open() {
    this.#source?.close();
    this.#source = new EventSource('api/stream');
    this.#source.addEventListener('change', (event) => this.#take(JSON.parse(event.data)));
    this.#source.addEventListener('beat', () => this.#alive());
    this.#source.onerror = () => this.#lose();
    this.#watch();
  }

  #watch() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.#lose();
      this.#open();
    }, silence);
  }

  #alive() {
    this.#watch();
    if (this.server === 'Connected') return;
    this.server = 'Connected';
    this.#listener([]);
  }

  #lose() {
    // A browser tries again by itself, unless the answer was not a stream.
    if (this.#source.readyState === EventSource.CLOSED) {
      clearTimeout(this.#watchdog);
      this.#watchdog = setTimeout(() => this.#open(), retry);
    }
    if (this.server === 'Lost') return;
    this.server = 'Lost';
    this.#listener([]);
  }

  #take(message) {
    this.server = 'Connected';
    this.#watch();
    this.connection = message.connection;
    if (message.full) this.workloads.clear();
    const keys = [...(message.removed || [])];
    for (const key of keys) this.workloads.delete(key);
    for (const workload of message.workloads) {
      const key = keyOf(workload);
      this.workloads.set(key, workload);
      keys.push(key);
    }
    if (message.connection.state === 'Connected') this.isComplete = true;
    this.#listener(message.full ? null : keys);
  }
}
