// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package test stands for what tests the product.
package test
