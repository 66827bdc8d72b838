// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheAddressIsGivenInAFileForItsOwner(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "open.html")
	g.Expect(writeOpener(path, "http://127.0.0.1:1/token/")).To(Succeed())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(os.ReadFile(path)).To(ContainSubstring(`url=http://127.0.0.1:1/token/`))
}

func TestABrowserOnEachSystem(t *testing.T) {
	for system, want := range map[string]string{"linux": "xdg-open", "freebsd": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		name, _ := browserCommand(system)
		NewWithT(t).Expect(name).To(Equal(want))
	}
}
