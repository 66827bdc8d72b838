// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// What there is to see when no workload is chosen: who needs help, and who is on its way.

import {h} from './dom.js';
import {blockerItem, groups} from './blockers.js';
import {hashOf, keyOf, phaseBadge, phaseOrder, phases, plural} from './words.js';

// overviewData is what the overview is drawn from.
export function overviewData(workloads) {
  return workloads.filter((workload) => workload.phase !== 'Healthy').map(({pods, revisions, ...rest}) => rest);
}

export function overview(workloads) {
  const byPhase = Object.groupBy(workloads, (workload) => workload.phase);
  const stalled = byPhase.Stalled || [];
  const moving = [...(byPhase.Unknown || []), ...(byPhase.Progressing || []), ...(byPhase.Paused || [])];
  return [
    h('h2', {}, headline(workloads, stalled)),
    h('ul', {class: 'tally'}, phaseOrder.map((phase) => h('li', {class: byPhase[phase] ? '' : 'zero'},
      h('b', {}, String(byPhase[phase]?.length || 0)), phaseBadge(phase), h('small', {}, phases[phase].says)))),
    stalled.length > 0 && h('section', {class: 'stalled', 'aria-label': 'Need help'}, stalled.map(stuckCard)),
    moving.length > 0 && h('section', {'aria-labelledby': 'moving-title'}, h('h3', {id: 'moving-title'}, 'Under way'), movingTable(moving)),
  ];
}

function headline(workloads, stalled) {
  if (!workloads.length) return 'No workloads here yet';
  if (stalled.length) return `${plural(stalled.length, 'workload needs', 'workloads need')} help`;
  return 'Nothing needs help';
}

// stuckCard names a workload that is stuck, and the worst of what it waits for.
function stuckCard(workload) {
  const found = groups(workload.blockers || []);
  const [worst, ...others] = found;
  return h('article', {class: 'card'},
    h('h3', {}, h('a', {href: hashOf(keyOf(workload))}, workload.name),
      h('small', {}, ` ${workload.kind} in ${workload.namespace}`),
      h('span', {class: 'share'}, `${workload.updated} of ${workload.replicas} updated`)),
    worst ? h('ul', {class: 'blockers'}, blockerItem(worst, workload)) : h('p', {class: 'message'}, workload.message || workload.reason),
    others.length > 0 && h('p', {class: 'quietly'}, `and ${plural(others.length, 'more thing')} that it waits for`));
}

function movingTable(workloads) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Under way'}, h('table', {},
    h('thead', {}, h('tr', {}, ['Workload', 'Phase', 'Updated', 'Available', 'Why'].map((title) => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, workloads.map((workload) => h('tr', {},
      h('th', {scope: 'row'}, h('a', {href: hashOf(keyOf(workload))}, workload.name), h('small', {}, ` ${workload.namespace}`)),
      h('td', {}, phaseBadge(workload.phase)),
      h('td', {class: 'number'}, `${workload.updated}/${workload.replicas}`),
      h('td', {class: 'number'}, `${workload.available}/${workload.replicas}`),
      h('td', {}, waitsFor(workload)))))));
}

// waitsFor says what a workload that is under way waits for first: not that pods wait for
// each other.
function waitsFor(workload) {
  const first = (workload.blockers || []).find((blocker) => blocker.step !== 'Waiting');
  const words = workload.message || workload.reason || '';
  if (!first) return words;
  return [h('strong', {}, first.reason), ` ${first.pod || ''}: ${first.message}`, h('small', {class: 'quietly'}, ` ${words}`)];
}
