// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// The grid of pods: one cell each, by step or in their order, and the details of the one
// that is looked at.

import {h, keyed, redraw, set, text} from './dom.js';
import {image, known, plural, quantities, since, stateInfo, states, stepBadge, stepOf} from './words.js';

const order = Object.keys(states);
// With few pods the cells have room for names, with many they are small.
const few = 60;
const many = 150;

export class Pods {
  element = h('section', {class: 'pods', 'aria-labelledby': 'pods-title'});

  #title = h('h3', {id: 'pods-title'});
  #grid = h('div', {class: 'grid', role: 'listbox', 'aria-labelledby': 'pods-title', 'aria-describedby': 'pods-help'});
  #details = h('div', {class: 'details', role: 'region', 'aria-label': 'Pod'});
  #modes;
  #byStep = true;
  #pods = new Map();
  #pinned = '';
  #shown = '';
  #followed = '';

  constructor() {
    this.#modes = h('div', {class: 'segments', role: 'group', 'aria-label': 'Arrange pods'},
      ['By step', 'By name'].map((label, index) => h('button', {type: 'button', onclick: () => this.#arrange(index === 0)}, label)));
    this.element.append(
      h('div', {class: 'heading'}, this.#title, this.#modes),
      h('p', {class: 'sr', id: 'pods-help'}, 'Arrow keys move between pods, Enter keeps the details of one.'),
      h('div', {class: 'split'}, this.#grid, this.#details));
    this.#grid.onkeydown = (event) => this.#key(event);
    this.#grid.addEventListener('focusin', () => this.follow());
    this.#grid.onmouseover = (event) => this.#look(event.target.closest('.cell'));
    this.#grid.onmouseleave = () => this.#show(this.#pinned || this.#focused());
    this.#grid.onclick = (event) => this.#pin(event.target.closest('.cell'));
    this.#arrange(true);
  }

  show(pods) {
    this.#pods = new Map((pods || []).map((pod) => [pod.name, pod]));
    if (!this.#pods.has(this.#pinned)) this.#pinned = '';
    this.#draw();
  }

  // follow shows the pod that the focus has come to. Whoever shows the page calls it now
  // and then: a window that is not in front gets no events when its focus moves.
  follow() {
    const focused = this.#focused();
    if (focused === this.#followed) return;
    this.#followed = focused;
    this.#look(this.#cell(focused));
  }

  #arrange(byStep) {
    this.#byStep = byStep;
    [...this.#modes.children].forEach((button, index) => set(button, 'aria-pressed', String((index === 0) === byStep)));
    this.#draw();
  }

  #groups() {
    const pods = [...this.#pods.values()];
    if (!this.#byStep) return pods.length ? [{step: '', pods}] : [];
    const found = Object.groupBy(pods, stepOf);
    return Object.keys(found).sort((a, b) => place(a) - place(b)).map((step) => ({step, pods: found[step]}));
  }

  #draw() {
    const focused = this.#focused();
    text(this.#title, plural(this.#pods.size, 'pod'));
    set(this.#grid, 'class', this.#pods.size > many ? 'grid small' : this.#pods.size <= few ? 'grid wide' : 'grid');
    keyed(this.#grid, this.#groups(), (group) => group.step || 'all', makeGroup, updateGroup);
    // A cell that moved to another step has lost the focus on its way.
    if (focused && this.#focused() !== focused) this.#cell(focused)?.focus({preventScroll: true});
    this.#rove(this.#focused() || this.#pinned);
    this.#show(this.#pods.has(this.#shown) ? this.#shown : '');
    this.follow();
  }

  #cells() {
    return [...this.#grid.querySelectorAll('.cell')];
  }

  #cell(name) {
    return this.#cells().find((cell) => cell.dataset.pod === name);
  }

  #focused() {
    return this.#grid.contains(document.activeElement) ? document.activeElement.dataset.pod || '' : '';
  }

  #rove(name) {
    const cells = this.#cells();
    const entry = cells.find((cell) => cell.dataset.pod === name) || cells[0];
    for (const cell of cells) {
      set(cell, 'tabindex', cell === entry ? 0 : -1);
      set(cell, 'aria-selected', String(cell.dataset.pod === this.#pinned));
    }
  }

  #look(cell) {
    if (!cell) return;
    if (cell === document.activeElement) this.#rove(cell.dataset.pod);
    this.#show(cell.dataset.pod);
  }

  #pin(cell) {
    if (!cell) return;
    this.#pinned = this.#pinned === cell.dataset.pod ? '' : cell.dataset.pod;
    cell.focus();
    this.follow();
    this.#rove(cell.dataset.pod);
  }

  #show(name) {
    this.#shown = name;
    const pod = this.#pods.get(name);
    const present = order.filter((step) => [...this.#pods.values()].some((one) => stepOf(one) === step));
    redraw(this.#details, pod || present, () => (pod ? podDetails(pod) : legend(present)));
  }

  #key(event) {
    const cell = event.target.closest('.cell');
    if (!cell) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.#pin(cell);
      return;
    }
    const cells = this.#cells();
    const at = cells.indexOf(cell);
    const to = {
      ArrowRight: () => cells[at + 1], ArrowLeft: () => cells[at - 1], Home: () => cells[0], End: () => cells.at(-1),
      ArrowDown: () => neighbor(cells, cell, 1), ArrowUp: () => neighbor(cells, cell, -1),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    to()?.focus();
    this.follow();
  }
}

function place(step) {
  const at = order.indexOf(step);
  return at < 0 ? order.length : at;
}

// neighbor is the cell nearest to one in the next line below (1) or above (-1).
function neighbor(cells, cell, direction) {
  const from = cell.getBoundingClientRect();
  let best;
  let least = Infinity;
  for (const other of cells) {
    const box = other.getBoundingClientRect();
    const down = (box.top - from.top) * direction;
    if (down < from.height / 2) continue;
    const distance = down * 100 + Math.abs(box.left - from.left);
    if (distance < least) [best, least] = [other, distance];
  }
  return best;
}

function makeGroup(group) {
  const info = stateInfo(group.step);
  return h('div', {class: 'group', role: 'group'},
    group.step && h('div', {class: 'label', 'aria-hidden': 'true', title: info.says},
      h('span', {class: `swatch s-${group.step}`}, info.letter), h('span', {class: 'word'}, info.label), h('b', {})),
    h('div', {class: 'cells'}));
}

function updateGroup(element, group) {
  const cells = element.lastChild;
  set(element, 'aria-label', group.step ? `${stateInfo(group.step).label}, ${plural(group.pods.length, 'pod')}` : 'All pods');
  if (group.step) text(element.firstChild.lastChild, String(group.pods.length));
  keyed(cells, group.pods, (pod) => pod.name, makeCell, updateCell);
}

function makeCell(pod) {
  return h('div', {role: 'option', tabindex: -1, 'data-pod': pod.name, 'aria-selected': 'false'}, h('b', {}), h('span', {}, pod.name));
}

function updateCell(cell, pod) {
  const step = stepOf(pod);
  const info = stateInfo(step);
  set(cell, 'class', `cell s-${step}${pod.available ? '' : ' away'}`);
  set(cell, 'aria-label', [pod.name, info.label, pod.reason, pod.available ? '' : 'not available'].filter(Boolean).join(', '));
  text(cell.firstChild, info.letter);
}

function legend(present) {
  if (!present.length) return h('p', {class: 'quietly'}, 'There are no pods.');
  return [
    h('p', {class: 'quietly'}, 'Point at a pod, or go to it with the arrow keys. A pod with a bar below is not available.'),
    h('ul', {class: 'legend'}, present.map((step) => h('li', {}, stepBadge(step), h('span', {class: 'quietly'}, ' ' + stateInfo(step).says)))),
  ];
}

function podDetails(pod) {
  const facts = [
    ['Node', pod.node], ['IP', pod.ip], ['Revision', pod.revision || 'between two'],
    ['Restarts', `${pod.restarts}, ${pod.restartsSinceUpdate} since its update`],
    ['Serving', pod.available ? 'available' : pod.ready ? 'ready, not available yet' : 'not ready'],
    ['Kept', pod.kept && 'by the partition'], ['Changed', pod.inPlace && 'in place'],
    ['Age', known(pod.creationTimestamp) && since(pod.creationTimestamp)],
  ].filter(([, value]) => value);
  return [
    h('h4', {}, pod.name),
    h('p', {}, stepBadge(stepOf(pod)), known(pod.since) && h('span', {class: 'quietly'}, ' for ', since(pod.since))),
    (pod.reason || pod.message) && h('p', {class: 'message'}, pod.reason && h('b', {}, pod.reason, ' '), pod.message),
    h('dl', {class: 'facts'}, facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    h('ul', {class: 'parts'}, (pod.containers || []).map(containerItem), (pod.claims || []).map(claimItem)),
  ];
}

function containerItem(container) {
  const wanted = container.wantedResources && quantities(container.wantedResources);
  return h('li', {},
    h('b', {}, container.name), container.sidecar && h('small', {}, ' sidecar'),
    h('span', {class: container.ready ? 'ok' : 'bad'}, container.state),
    h('div', {}, h('code', {title: container.image}, image(container.image)),
      container.wantedImage && [' → ', h('code', {title: container.wantedImage}, image(container.wantedImage))]),
    h('div', {class: 'quietly'}, quantities(container.resources), wanted && ` → ${wanted}`));
}

function claimItem(claim) {
  return h('li', {},
    h('b', {}, claim.name), h('small', {}, ' claim'), h('span', {class: claim.reason ? 'bad' : 'ok'}, claim.reason || claim.phase),
    h('div', {class: 'quietly'}, [claim.capacity, claim.wanted && `→ ${claim.wanted}`, claim.class && `of class ${claim.class}`].filter(Boolean).join(' ')),
    claim.message && h('div', {}, claim.message));
}
