// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package recreate recreates claims: it reads what package volumes/recreate decides
// on, and writes what that decides.
//
// All of it is read from the API server, and only for claims that are being
// recreated, or are missing: no volume, snapshot or attachment is watched or kept in memory.
// Every write applies only to the object that was read, so that one which was decided on
// what is not so any more is refused.
package recreate
