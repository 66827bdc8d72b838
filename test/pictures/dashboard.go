// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	// The size of the page, and how much sharper the pictures are.
	pageWidth, pageHeight, pageScale = 1280, 690, 1.5
	// patience is how long the page may take for anything.
	patience = time.Minute
)

// begun are the commands that begin the rollouts of the picture; shown are what the page says when
// they are far enough.
var (
	begun = []string{
		`kubectl set image deployment/web nginx=nginx:alpine`,
		`kubectl insitu set image statefulset.apps.kruise.io/db main=nginx:latest`,
		`kubectl insitu set image cloneset/cache main=nginx:missing`,
	}
	shown = []string{"ImageNotPullable", "GracePeriod"}
)

// photograph takes pictures of the dashboard during rollouts, light and dark.
func photograph(ctx context.Context, target, browser string) (err error) {
	dashboard := exec.CommandContext(ctx, "kubectl", "insitu", "dashboard", "--namespace", "default")
	dashboard.Cancel = func() error { return dashboard.Process.Signal(syscall.SIGINT) }
	output, err := dashboard.StdoutPipe()
	if err != nil {
		return err
	}
	if err := dashboard.Start(); err != nil {
		return err
	}
	defer func() {
		_ = dashboard.Process.Signal(syscall.SIGINT)
		err = errors.Join(err, dashboard.Wait())
	}()
	scanner := bufio.NewScanner(output)
	if !scanner.Scan() {
		return errors.New("the dashboard says no address")
	}
	address := regexp.MustCompile(`http://\S+`).FindString(scanner.Text())
	tab, closeTab := newTab(ctx, browser)
	defer closeTab()
	if err := chromedp.Run(tab, chromedp.EmulateViewport(pageWidth, pageHeight, chromedp.EmulateScale(pageScale)), chromedp.Navigate(address)); err != nil {
		return fmt.Errorf("open %s: %w", address, err)
	}
	for _, words := range begun {
		if out, err := exec.CommandContext(ctx, "bash", "-c", words).CombinedOutput(); err != nil { //nolint:gosec // the commands are those above
			return fmt.Errorf("run %s: %w: %s", words, err, out)
		}
	}
	for _, words := range shown {
		var isShown bool
		if err := chromedp.Run(tab, chromedp.Poll(fmt.Sprintf("document.body.innerText.includes(%q)", words), &isShown, chromedp.WithPollingTimeout(patience))); err != nil {
			return fmt.Errorf("wait for %q on the page: %w", words, err)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		if err := takePicture(tab, scheme, filepath.Join(target, "dashboard-"+scheme+".png")); err != nil {
			return err
		}
	}
	return nil
}

// newTab opens a tab of a browser of its own.
func newTab(ctx context.Context, browser string) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"))
	allocator, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(allocator)
	return tab, func() {
		_ = chromedp.Cancel(tab) // it waits for the browser to end
		cancel()
		stop()
	}
}

func takePicture(tab context.Context, scheme, path string) error {
	var picture []byte
	err := chromedp.Run(tab,
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
		chromedp.Sleep(time.Second), // the page is drawn once more
		chromedp.CaptureScreenshot(&picture),
	)
	if err != nil {
		return fmt.Errorf("take a picture, %s: %w", scheme, err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil { //nolint:gosec // everybody may see a picture
		return fmt.Errorf("write a picture: %w", err)
	}
	return nil
}
