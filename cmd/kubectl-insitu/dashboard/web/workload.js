// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// The head of a workload: its phase and why, its counts, its revisions.

import {h} from './dom.js';
import {groupOf, image, known, phaseBadge, since} from './words.js';

// headData is what the head is drawn from.
export function headData({pods, blockers, ...rest}) {
  return {...rest, stuck: stuckCount(pods)};
}

function stuckCount(pods) {
  return (pods || []).filter((pod) => pod.state === 'Stuck').length;
}

export function head(workload) {
  return [
    h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'All workloads'), ' / ', workload.namespace, ' / ', `${workload.kind}.${groupOf(workload)}`),
    h('div', {class: 'title'}, h('h2', {}, workload.name), phaseBadge(workload.phase),
      workload.reason && h('span', {class: 'reason'}, workload.reason)),
    workload.message && h('p', {class: 'lead'}, workload.message),
    progress(workload),
    h('dl', {class: 'facts'}, facts(workload).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    workload.revisions?.length > 0 && revisions(workload.revisions),
  ];
}

function progress(workload) {
  const total = Math.max(1, workload.replicas);
  const stuck = stuckCount(workload.pods);
  const parts = [['done', workload.updated], ['stuck', Math.min(stuck, total - workload.updated)]];
  const bar = h('div', {
    class: 'progress', role: 'progressbar', 'aria-label': 'Pods updated', 'aria-valuemin': 0, 'aria-valuemax': workload.replicas,
    'aria-valuenow': workload.updated,
  });
  for (const [name, count] of parts) {
    const part = h('span', {class: name});
    part.style.inlineSize = `${Math.max(0, Math.min(1, count / total)) * 100}%`;
    bar.append(part);
  }
  return bar;
}

function facts(workload) {
  const all = workload.replicas;
  return [
    ['Updated', `${workload.updated} of ${all}`],
    ['Ready', `${workload.ready} of ${all}`],
    ['Available', `${workload.available} of ${all}`],
    ['In place', String(workload.inPlace)],
    ['Recreated', String(workload.recreated)],
    ['May be unavailable', String(workload.maxUnavailable)],
    ['Partition', workload.partition],
    ['Policy', workload.policy],
    ['Updated by', workload.driver + (workload.held ? ', held for this update' : '')],
    ['Paused', workload.paused && 'by its owner'],
    ['Kept of recreated claims', workload.kept && kept(workload.kept)],
  ].filter(([, value]) => value);
}

// kept says what storage is kept. kubectl insitu volumes lists it.
function kept({volumes, capacity, snapshots, oldestTimestamp, overdue}) {
  const things = [volumes && `${volumes} volumes with ${capacity}`, snapshots && `${snapshots} snapshots`].filter(Boolean).join(', ');
  return [`${things}, the oldest for `, since(oldestTimestamp), overdue > 0 && `, ${overdue} overdue`];
}

function revisions(list) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Revisions'}, h('table', {class: 'revisions'},
    h('thead', {}, h('tr', {}, ['Revision', 'Images', 'Pods', 'Age'].map((title) => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, list.map((revision) => h('tr', {},
      h('th', {scope: 'row'}, revision.number ? `#${revision.number} ` : '', h('code', {}, revision.name),
        revision.isUpdate && h('span', {class: 'tag'}, 'wanted'),
        revision.isCurrent && !revision.isUpdate && h('span', {class: 'tag'}, 'current')),
      h('td', {}, (revision.images || []).map((name) => h('code', {class: 'image', title: name}, image(name)))),
      h('td', {class: 'number'}, String(revision.pods)),
      h('td', {class: 'number'}, known(revision.creationTimestamp) && since(revision.creationTimestamp)))))));
}
