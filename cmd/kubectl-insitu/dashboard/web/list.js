// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// The list of workloads at the side, and what filters it.

import {h, keyed, set, text} from './dom.js';
import {hashOf, keyOf, nameOf, phaseOrder, phases, plural} from './words.js';

const byId = (id) => document.getElementById(id);

export class List {
  #workloads = [];
  #hidden = new Set();
  #chosen = '';

  constructor() {
    byId('filter').oninput = () => this.#draw();
    byId('namespace').onchange = () => this.#draw();
    byId('list').onkeydown = (event) => this.#move(event);
    byId('list').addEventListener('focusin', (event) => this.#rove(event.target.closest('a')));
    byId('filter').onkeydown = (event) => this.#leaveFilter(event);
    addEventListener('keydown', (event) => {
      if (event.key === '/' && !event.target.closest('input, select, textarea')) {
        event.preventDefault();
        byId('filter').focus();
      }
    });
  }

  // show draws the workloads in the order in which they are given.
  show(workloads, chosen) {
    this.#workloads = workloads;
    this.#chosen = chosen;
    this.#drawNamespaces();
    this.#drawPhases();
    this.#draw();
  }

  #leaveFilter(event) {
    if (event.key === 'Escape') {
      event.target.value = '';
      this.#draw();
      event.stopPropagation();
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      byId('list').querySelector('a')?.focus();
    }
  }

  #matches(workload) {
    const namespace = byId('namespace').value;
    if (this.#hidden.has(workload.phase) || (namespace && workload.namespace !== namespace)) return false;
    const text = [nameOf(workload), workload.namespace, workload.phase, workload.reason, workload.message].join(' ').toLowerCase();
    return byId('filter').value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  #drawNamespaces() {
    const names = [...new Set(this.#workloads.map((workload) => workload.namespace))].sort();
    const select = byId('namespace');
    if (select.value && !names.includes(select.value)) names.push(select.value);
    keyed(select, ['', ...names], (name) => name, (name) => h('option', {value: name}, name || 'All namespaces'));
    select.hidden = names.length < 2;
  }

  #drawPhases() {
    const counts = {};
    for (const workload of this.#workloads) counts[workload.phase] = (counts[workload.phase] || 0) + 1;
    const there = phaseOrder.filter((phase) => counts[phase] || this.#hidden.has(phase));
    keyed(byId('phases'), there, (phase) => phase, (phase) => {
      const button = h('button', {class: `chip p-${phase}`, type: 'button', title: phases[phase].says},
        h('span', {class: 'glyph', 'aria-hidden': 'true'}, phases[phase].glyph), h('span', {}), h('b', {}));
      button.onclick = () => {
        if (!this.#hidden.delete(phase)) this.#hidden.add(phase);
        this.#drawPhases();
        this.#draw();
      };
      return button;
    }, (button, phase) => {
      text(button.children[1], phase);
      text(button.children[2], String(counts[phase] || 0));
      set(button, 'aria-pressed', String(!this.#hidden.has(phase)));
    });
  }

  #draw() {
    const shown = this.#workloads.filter((workload) => this.#matches(workload));
    keyed(byId('list'), shown, keyOf, makeItem, (item, workload) => updateItem(item, workload, keyOf(workload) === this.#chosen));
    const links = [...byId('list').querySelectorAll('a')];
    const entry = links.find((link) => link === document.activeElement)
      || links.find((link) => link.hasAttribute('aria-current')) || links[0];
    this.#rove(entry);
    byId('none').hidden = shown.length > 0;
    text(byId('none'), this.#workloads.length ? `None of ${plural(this.#workloads.length, 'workload')} matches.` : '');
  }

  // rove leaves one link in the order of Tab: the arrow keys reach the others.
  #rove(entry) {
    if (!entry) return;
    for (const link of byId('list').querySelectorAll('a')) set(link, 'tabindex', link === entry ? 0 : -1);
  }

  #move(event) {
    const links = [...byId('list').querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0) byId('filter').focus();
    else links[Math.min(to, links.length - 1)]?.focus();
  }
}

function makeItem(workload) {
  return h('li', {}, h('a', {href: hashOf(keyOf(workload))},
    h('span', {class: 'mark', 'aria-hidden': 'true'}),
    h('span', {class: 'what'}, h('b', {}), h('small', {})),
    h('span', {class: 'counts'}, h('span', {class: 'number'}), h('span', {class: 'bar', 'aria-hidden': 'true'}, h('span', {})))));
}

function updateItem(item, workload, isChosen) {
  const link = item.firstChild;
  const [mark, what, counts] = link.children;
  const share = workload.replicas ? Math.min(1, workload.updated / workload.replicas) : 1;
  set(link, 'aria-current', isChosen ? 'page' : null);
  set(link, 'aria-label', `${workload.name}, ${workload.kind} in ${workload.namespace}, ${workload.phase}, `
    + `${workload.updated} of ${plural(workload.replicas, 'pod')} updated`);
  set(mark, 'class', `mark p-${workload.phase}`);
  text(mark, phases[workload.phase]?.glyph || '?');
  text(what.children[0], workload.name);
  text(what.children[1], `${workload.kind} · ${workload.namespace}`);
  text(counts.children[0], `${workload.updated}/${workload.replicas}`);
  set(counts.children[1], 'class', `bar p-${workload.phase}`);
  counts.children[1].firstChild.style.inlineSize = `${share * 100}%`;
}
