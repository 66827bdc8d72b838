// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboard drives the page of kubectl insitu dashboard in a headless Chromium,
// against a source that says what the tests want: make test-browser. It leaves pictures
// of the page in .out.
package dashboard
