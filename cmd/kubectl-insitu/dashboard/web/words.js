// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// What things are called, in which order they come, and how times are told.

import {h, text} from './dom.js';

// The states of a pod in the order in which an update passes them, each with the letter
// that stands for it in small cells, and what it means.
export const states = {
  Stuck: {letter: '!', label: 'Stuck', says: 'cannot go on by itself'},
  Waiting: {letter: 'W', label: 'Waiting', says: 'has not started to change'},
  HookHeld: {letter: 'H', label: 'Held by a hook', says: 'a lifecycle hook holds it'},
  Draining: {letter: 'D', label: 'Draining', says: 'is being taken out of service'},
  Grace: {letter: 'G', label: 'Grace period', says: 'is out of service, its grace period runs'},
  UpdatingClaims: {letter: 'C', label: 'Updating claims', says: 'its claims are being changed'},
  Resizing: {letter: 'Z', label: 'Resizing', says: 'its CPU and memory are being changed'},
  Patching: {letter: 'P', label: 'Patching', says: 'is being changed now'},
  Restarting: {letter: 'R', label: 'Restarting', says: 'the kubelet restarts containers'},
  Verifying: {letter: 'V', label: 'Verifying', says: 'restarted, not ready yet'},
  Recreating: {letter: 'N', label: 'Recreating', says: 'is deleted, to be made again'},
  Terminating: {letter: 'T', label: 'Terminating', says: 'is on its way out'},
  Old: {letter: '–', label: 'At an older revision', says: 'serves, and is kept as it is'},
  Settled: {letter: '✓', label: 'Updated', says: 'is at the wanted revision'},
};

export const phases = {
  Stalled: {glyph: '!', says: 'needs help'},
  Unknown: {glyph: '?', says: 'the operator has not said anything yet'},
  Progressing: {glyph: '›', says: 'on its way'},
  Paused: {glyph: '‖', says: 'waits for its owner'},
  Healthy: {glyph: '✓', says: 'as wanted'},
};

export const phaseOrder = Object.keys(phases);

// compare orders workloads, the worst first.
export function compare(a, b) {
  return phaseOrder.indexOf(a.phase) - phaseOrder.indexOf(b.phase)
    || a.namespace.localeCompare(b.namespace) || a.name.localeCompare(b.name) || a.kind.localeCompare(b.kind);
}

// stepOf is the state of a pod as the page shows it: what is settled is told apart by
// whether it is updated.
export function stepOf(pod) {
  return pod.state === 'Settled' && !pod.updated ? 'Old' : pod.state;
}

// stateInfo describes a state, also one that is newer than this page.
export function stateInfo(step) {
  return states[step] || {letter: step.slice(0, 1), label: step, says: ''};
}

export function groupOf(workload) {
  return workload.apiVersion.includes('/') ? workload.apiVersion.split('/')[0] : '';
}

// keyOf names a workload as the server does.
export function keyOf(workload) {
  return [groupOf(workload), workload.kind, workload.namespace, workload.name].join('/');
}

// nameOf is how kubectl spells a workload: statefulset.apps.kruise.io/db.
export function nameOf(workload) {
  return `${workload.kind.toLowerCase()}.${groupOf(workload)}/${workload.name}`;
}

// hashOf is the part of the address that chooses a workload.
export function hashOf(key) {
  return '#/' + key.split('/').map(encodeURIComponent).join('/');
}

export function command(verb, workload, ...rest) {
  return ['kubectl insitu', verb, nameOf(workload), '-n', workload.namespace, ...rest].join(' ');
}

// commandsFor is what to run about a blocker: the commands that its advice names in
// backticks, or the one that explains it where a user has to act.
export function commandsFor(blocker, workload) {
  const named = [...(blocker.advice || '').matchAll(/`([^`]+)`/g)].map((match) => match[1]);
  return named.length || !blocker.needsHelp ? named : [command('why', workload)];
}

export function plural(count, one, many = one + 's') {
  return `${count} ${count === 1 ? one : many}`;
}

// known reports whether a time of the server says something; Go's zero time does not.
export function known(time) {
  return Boolean(time) && !time.startsWith('0001-');
}

const units = [['d', 86400], ['h', 3600], ['min', 60]];

// ago tells how long ago something was, shortly.
export function ago(time, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  for (const [unit, size] of units) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}

// since is an element that tells how long ago a time was, and keeps telling.
export function since(time) {
  if (!known(time)) return null;
  return h('time', {datetime: time, title: new Date(time).toLocaleString(), 'data-ago': true}, ago(time));
}

// tick updates all elements that tell how long ago something was.
export function tick() {
  for (const element of document.querySelectorAll('time[data-ago]')) {
    text(element, ago(element.dateTime));
  }
}

// clock is a time of day.
export function clock(time, withSeconds = true) {
  return new Date(time).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: withSeconds ? '2-digit' : undefined, hourCycle: 'h23'});
}

export function day(time) {
  return new Date(time).toLocaleDateString([], {day: 'numeric', month: 'short'});
}

// stamp is a time of day, with the day if it is not today.
export function stamp(time) {
  const isToday = new Date(time).toDateString() === new Date().toDateString();
  return isToday ? clock(time) : `${day(time)} ${clock(time, false)}`;
}

// image shortens the name of an image to what differs: registry left out.
export function image(name) {
  const [repository, digest] = name.split('@');
  const short = repository.split('/').slice(-1)[0];
  return digest ? `${short}@${digest.replace(/^sha256:/, '').slice(0, 8)}` : short;
}

// quantities tells resources in one line: cpu 500m/1, memory 1Gi.
export function quantities(resources) {
  const {requests = {}, limits = {}} = resources || {};
  const names = [...new Set([...Object.keys(requests), ...Object.keys(limits)])].sort();
  return names.map((name) => {
    const [request, limit] = [requests[name], limits[name]];
    if (request && limit && request !== limit) return `${name} ${request}–${limit}`;
    return `${name} ${request || 'up to ' + limit}`;
  }).join(', ');
}

export function phaseBadge(phase) {
  return h('span', {class: `phase p-${phase}`}, h('span', {class: 'glyph', 'aria-hidden': 'true'}, phases[phase]?.glyph || '?'), phase);
}

export function stepBadge(step) {
  const info = stateInfo(step);
  return h('span', {class: `step s-${step}`, title: info.says}, h('span', {class: 'glyph', 'aria-hidden': 'true'}, info.letter), info.label);
}
