// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// opener is the page that leads a browser to the dashboard.
var opener = template.Must(template.New("").Parse(
	`<!doctype html><meta charset="utf-8"><title>Insitu</title><meta http-equiv="refresh" content="0;url={{.}}"><a href="{{.}}">Open the dashboard</a>` + "\n"))

// Open shows an address in the user's browser. Arguments of programs are for every user
// of the machine to see, so the address goes there in a file that only its owner may
// read. Call remove at the end.
func Open(ctx context.Context, url string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "insitu-dashboard-")
	if err != nil {
		return nil, fmt.Errorf("open the browser: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) }
	path := filepath.Join(folder, "open.html")
	if err := writeOpener(path, url); err != nil {
		remove()
		return nil, fmt.Errorf("open the browser: %w", err)
	}
	name, args := browserCommand(runtime.GOOS)
	command := exec.CommandContext(ctx, name, append(args, path)...)
	if err := command.Start(); err != nil {
		remove()
		return nil, fmt.Errorf("open the browser: %w", err)
	}
	go func() { _ = command.Wait() }() // It says by itself what goes wrong.
	return remove, nil
}

func writeOpener(path, url string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return opener.Execute(file, url)
}

// browserCommand is what opens a file with the program that the user has chosen for it.
func browserCommand(system string) (name string, args []string) {
	switch system {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	default:
		return "xdg-open", nil
	}
}
