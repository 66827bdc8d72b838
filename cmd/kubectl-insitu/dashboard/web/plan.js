// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Asks what would come of a change, before a user applies it.

import {announce, commandLine, h, redraw, set, text} from './dom.js';
import {command, keyOf, nameOf, plural} from './words.js';

const ways = {
  InPlace: {label: 'in place', glyph: '✓'}, Recreate: {label: 'recreated', glyph: 'N'}, Refused: {label: 'refused', glyph: '!'},
  Kept: {label: 'kept', glyph: '–'}, Unchanged: {label: 'unchanged', glyph: '='},
};
const sizes = [['requests', 'cpu'], ['requests', 'memory'], ['limits', 'cpu'], ['limits', 'memory']];

export class Plan {
  element = h('section', {class: 'plan', 'aria-labelledby': 'plan-title'});

  #form = h('form', {novalidate: true});
  #result = h('div', {class: 'result', role: 'region', 'aria-label': 'What would come of it'});
  #workload = null;
  #containers = [];
  #fields = {};

  constructor() {
    this.element.append(
      h('div', {class: 'heading'}, h('h3', {id: 'plan-title'}, 'Plan a change'),
        h('span', {class: 'quietly'}, 'Asks the API server by dry run. Nothing is changed.')),
      this.#form, this.#result);
    this.#form.onsubmit = (event) => {
      event.preventDefault();
      this.#ask();
    };
  }

  // show takes the containers of a workload. What is typed stays while it is the same one.
  show(workload) {
    const isOther = !this.#workload || keyOf(this.#workload) !== keyOf(workload);
    this.#workload = workload;
    this.#containers = containersOf(workload);
    if (isOther) this.#result.replaceChildren();
    redraw(this.#form, [keyOf(workload), this.#containers.map((container) => container.name)], () => this.#build());
  }

  #build() {
    if (!this.#containers.length) return h('p', {class: 'quietly'}, 'There is no pod to take the containers from.');
    const field = (label, name, hint) => {
      this.#fields[name] = h('input', {name, autocomplete: 'off', spellcheck: 'false', placeholder: hint});
      return h('label', {class: name}, h('span', {}, label), this.#fields[name]);
    };
    this.#fields = {container: h('select', {name: 'container', onchange: () => this.#fill()}, this.#containers.map(({name}) => h('option', {value: name}, name)))};
    const parts = [
      h('label', {class: 'container'}, h('span', {}, 'Container'), this.#fields.container),
      field('Image', 'image', ''),
      sizes.map(([kind, resource]) => field(`${resource === 'cpu' ? 'CPU' : 'Memory'} ${kind === 'limits' ? 'limit' : 'request'}`, `${kind}-${resource}`, resource === 'cpu' ? 'as 500m' : 'as 256Mi')),
      h('button', {class: 'primary', type: 'submit'}, 'Plan'),
    ];
    this.#fill();
    return parts;
  }

  #chosen() {
    return this.#containers.find(({name}) => name === this.#fields.container.value) || this.#containers[0];
  }

  #fill() {
    const container = this.#chosen();
    this.#fields.image.value = container.image;
    for (const [kind, resource] of sizes) this.#fields[`${kind}-${resource}`].value = container.resources[kind]?.[resource] || '';
  }

  // change is what differs from what there is.
  #change() {
    const container = this.#chosen();
    const change = {name: container.name, image: '', requests: {}, limits: {}};
    const image = this.#fields.image.value.trim();
    if (image !== container.image) change.image = image;
    for (const [kind, resource] of sizes) {
      const value = this.#fields[`${kind}-${resource}`].value.trim();
      if (value && value !== container.resources[kind]?.[resource]) change[kind][resource] = value;
    }
    return change;
  }

  async #ask() {
    const {apiVersion, kind, namespace, name} = this.#workload;
    const asked = keyOf(this.#workload);
    const change = this.#change();
    set(this.element, 'aria-busy', 'true');
    this.#result.replaceChildren(h('p', {class: 'quietly'}, 'Asking the API server…'));
    let shown;
    try {
      const answer = await fetch('api/plan', {
        method: 'POST', headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({workload: {apiVersion, kind, namespace, name}, containers: [change]}),
      });
      const plan = await answer.json();
      if (!answer.ok) throw new Error(plan.error);
      shown = planResult(plan, this.#workload, change);
      announce(`Planned: ${summary(plan)}`);
    } catch (error) {
      shown = [h('p', {class: 'problem'}, error.message)];
      announce(error.message);
    }
    if (keyOf(this.#workload) === asked) this.#result.replaceChildren(...shown.flat().filter(Boolean));
    set(this.element, 'aria-busy', null);
  }
}

// containersOf returns the containers with what the template wants of them.
function containersOf(workload) {
  const pod = workload.pods?.find((one) => one.updated) || workload.pods?.[0];
  return (pod?.containers || []).map((container) => ({
    name: container.name, image: container.wantedImage || container.image,
    resources: container.wantedResources || container.resources || {},
  }));
}

function summary(plan) {
  const counts = Object.groupBy(plan.pods || [], (pod) => pod.way);
  const restarts = (plan.pods || []).filter((pod) => pod.restarts?.length).length;
  const words = Object.keys(ways).filter((way) => counts[way]).map((way) => `${counts[way].length} ${ways[way].label}`);
  if (restarts || !counts.Recreate) words.push(restarts ? `containers restart in ${plural(restarts, 'pod')}` : 'nothing restarts');
  return words.join(', ');
}

function planResult(plan, workload, change) {
  return [
    h('p', {class: 'summary'}, h('b', {}, summary(plan))),
    plan.changes?.length && h('ul', {class: 'changes'}, plan.changes.map((line) => h('li', {}, h('code', {}, line)))),
    plan.refusals?.length && h('div', {class: 'problem'}, h('b', {}, 'Refused'), h('ul', {}, plan.refusals.map((line) => h('li', {}, line)))),
    plan.notes?.length && h('ul', {class: 'notes'}, plan.notes.map((line) => h('li', {}, line))),
    plan.pods?.length && podTable(plan.pods),
    plan.claims?.length && claimTable(plan.claims),
    h('p', {class: 'quietly'}, 'To apply it:'),
    applyCommands(workload, change).map(commandLine),
  ];
}

function wayBadge(way) {
  return h('span', {class: `way w-${way}`}, h('span', {class: 'glyph', 'aria-hidden': 'true'}, ways[way]?.glyph || '?'), ways[way]?.label || way);
}

function podTable(pods) {
  const why = (pod) => [pod.reason, pod.message].filter(Boolean).join(': ');
  const changes = (pod) => [...(pod.restarts || []).map((name) => `${name} restarts`), ...(pod.resizes || []), pod.drains ? 'drained for it' : ''].filter(Boolean).join(', ');
  return table('Pods', ['Pod', 'Way', 'What happens', 'Room on its node', 'Why'], pods.map((pod) => [
    pod.name, wayBadge(pod.way), changes(pod) || (pod.way === 'Recreate' ? 'deleted, and made again' : 'nothing'),
    pod.feasibility ? h('span', {class: `fits f-${pod.feasibility}`, title: pod.feasibilityMessage}, pod.feasibility, pod.feasibility !== 'Fits' && pod.feasibilityMessage ? `: ${pod.feasibilityMessage}` : '') : '',
    why(pod),
  ]));
}

function claimTable(claims) {
  return table('Claims', ['Claim', 'Change', 'Outcome'], claims.map((claim) => [
    claim.name, claim.change,
    claim.blocked ? h('span', {class: 'bad'}, ['Cannot', claim.reason, claim.message].filter(Boolean).join(': ')) : 'follows',
  ]));
}

function table(title, columns, rows) {
  return h('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': title}, h('table', {},
    h('thead', {}, h('tr', {}, columns.map((column) => h('th', {scope: 'col'}, column)))),
    h('tbody', {}, rows.map(([first, ...rest]) => h('tr', {}, h('th', {scope: 'row'}, first), rest.map((cell) => h('td', {}, cell)))))));
}

// applyCommands are what makes the planned change.
function applyCommands(workload, change) {
  const list = (values) => Object.entries(values).map(([name, value]) => `${name}=${value}`).join(',');
  const found = [];
  if (change.image) found.push(command('set image', workload, `${change.name}=${change.image}`));
  const given = [['--requests', list(change.requests)], ['--limits', list(change.limits)]].filter(([, value]) => value);
  if (given.length) found.push(command('set resources', workload, `-c ${change.name}`, ...given.map((pair) => pair.join('='))));
  return found;
}
