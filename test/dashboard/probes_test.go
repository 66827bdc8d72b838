// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package dashboard

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/runtime"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
)

type cdpContext = context.Context

// drawScript draws the pods of the workload "fleet" in a grid of its own, and returns how
// many nodes were touched when all pods got another state, and when one did, and how many
// milliseconds it took to draw all.
const drawScript = `(async () => {
	const {Pods} = await import('./pods.js');
	const {workloads} = await (await fetch('api/workloads')).json();
	const {pods} = workloads.find((one) => one.name === 'fleet');
	const grid = new Pods();
	document.body.append(grid.element);
	const changes = new MutationObserver(() => {});
	changes.observe(grid.element, {subtree: true, childList: true, attributes: true, characterData: true});
	const size = (nodes) => [...nodes].reduce((sum, node) => sum + 1 + (node.querySelectorAll?.('*').length ?? 0), 0);
	const touched = () => changes.takeRecords().reduce((sum, one) => sum + (size(one.addedNodes) + size(one.removedNodes) || 1), 0);
	const draining = pods.map((pod) => ({...pod, state: 'Draining'}));
	grid.show(pods);
	touched();
	const began = performance.now();
	grid.show(draining);
	const took = performance.now() - began;
	const all = touched();
	grid.show(pods);
	touched();
	grid.show(pods.with(0, draining[0]));
	const one = touched();
	grid.element.remove();
	return {all, one, took};
})()`

// awaitPromise has a script wait for what it promises.
func awaitPromise(params *runtime.EvaluateParams) *runtime.EvaluateParams {
	return params.WithAwaitPromise(true)
}

// value is the text of a value of the accessibility tree.
func value(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal(v.Value, &text) != nil {
		return ""
	}
	return text
}

// serveUntil serves until stop is called.
func serveUntil(t *testing.T, server *dashboard.Server) (stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	result := make(chan error, 1)
	go func() { result <- server.Serve(ctx) }()
	return cancel, result
}

// contrastScript computes the contrast of every text that is seen with what is behind it,
// by the formulas of WCAG 2.2 (1.4.3): 4.5, or 3 for large text.
const contrastScript = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const rgba = (color) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = color;
		canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const luminance = (color) => {
		const [r, g, b] = rgba(color).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => {
		const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
		return (light + 0.05) / (dark + 0.05);
	};
	const ground = (element) => {
		for (let at = element; at; at = at.parentElement) {
			const rect = at instanceof SVGGElement && at.classList.contains('span') && at.querySelector('rect');
			if (rect) return getComputedStyle(rect).fill;
			const color = getComputedStyle(at).backgroundColor;
			if (rgba(color)[3] > 0 && !(at instanceof SVGElement)) return color;
		}
		return 'white';
	};
	const poor = [];
	let checked = 0;
	for (const element of document.querySelectorAll('body *')) {
		const says = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join('') || element.placeholder;
		if (!says || element.tagName === 'title' || element.closest('.sr, noscript') || !element.checkVisibility()) continue;
		const style = getComputedStyle(element);
		const color = element instanceof SVGElement ? style.fill : style.color;
		const size = parseFloat(style.fontSize);
		const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
		const is = ratio(color, ground(element));
		checked += 1;
		if (is < least) poor.push(says.slice(0, 40) + ' (' + (element.getAttribute('class') || element.tagName) + '): ' + is.toFixed(2));
		if (element.placeholder && ratio(style.borderColor, ground(element.parentElement)) < 3) poor.push('edge of ' + says);
	}
	return {checked, poor};
})()`
