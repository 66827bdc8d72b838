// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build docs

// Package docs runs the commands of the pages of the documentation and of the examples on a lab, and
// compares what they print with what the pages show. Run it with: make test-docs
package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/insitu-dev/insitu/test/docs/bash"
	"github.com/insitu-dev/insitu/test/docs/page"
	"github.com/insitu-dev/insitu/test/docs/pages"
	"github.com/insitu-dev/insitu/test/short"
)

// root is the folder of the repository, from that of this package.
const root = "../.."

// patience is how long one command may take. Those that wait have timeouts of their own.
const patience = 5 * time.Minute

// shownNamespace is what pages call the namespace that they are run in.
const shownNamespace = "demo"

// alone are the pages that no other may run beside, for what they do to the cluster.
var alone = map[string]string{
	"docs/quickstart.md": "uninstalls Insitu",
}

// inShortRun are the pages that make test runs.
var inShortRun = []string{"docs/quickstart.md", "docs/statefulset.md", "examples/web-autoscaled/README.md"}

func TestDocs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pages")
}

var _ = Describe("The commands of", func() {
	all, err := pages.Read(root)
	if err != nil {
		It("all pages", func() { Fail(err.Error()) })
		return
	}
	// The longest pages first, so that no process is left with one at the end.
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(len(all[b].Blocks)-len(all[a].Blocks), strings.Compare(a, b))
	})
	for _, name := range names {
		if !all[name].Executed() {
			continue
		}
		labels := []any{Label("page")}
		if alone[name] != "" {
			labels = append(labels, Serial)
		}
		if slices.Contains(inShortRun, name) {
			labels = append(labels, short.Spec)
		}
		It(name, append(labels, func(ctx context.Context) {
			run(ctx, name, all[name].Blocks)
		})...)
	}
})

// What is not run is printed, so that it is a decision and no oversight.
var _ = ReportAfterSuite("What is not run", func(Report) {
	all, err := pages.Read(root)
	if err != nil {
		return // the suite has said so
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, block := range all[name].Blocks {
			if block.NotExecuted != "" {
				fmt.Fprintf(GinkgoWriter, "not run: %s:%d: %s\n", name, block.Line, block.NotExecuted)
			}
		}
	}
})

// run does what a reader of a page does.
func run(ctx context.Context, name string, blocks []page.Block) {
	GinkgoHelper()
	if alone[name] != "" && CurrentSpecReport().NumAttempts > 1 {
		installAgain(ctx)
	}
	reader := newReader(ctx, name)
	if folder, is := exampleOf(name); is {
		DeferCleanup(reader.removeExample, folder)
	}
	for _, block := range blocks {
		if block.File != "" {
			Expect(os.WriteFile(filepath.Join(reader.folder, block.File), []byte(block.Text), 0o600)).To(Succeed())
		}
		printed := ""
		for _, step := range block.Steps {
			output := reader.run(ctx, step)
			printed += output
			if step.Expected == nil {
				continue
			}
			reader.compare(step, printed)
			printed = ""
		}
	}
}

// installAgain installs Insitu, of which an earlier attempt may have left nothing.
func installAgain(ctx context.Context) {
	GinkgoHelper()
	lab, err := filepath.Abs(filepath.Join(root, os.Getenv("DOCS_LAB")))
	Expect(err).NotTo(HaveOccurred())
	deploy := exec.CommandContext(ctx, filepath.Join(root, "hack", "deploy"), lab) //nolint:gosec // a script of this repository
	output, err := deploy.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "hack/deploy: %s", output)
}

// reader has a namespace, a folder and a shell.
type reader struct {
	page      string
	namespace string
	folder    string
	shell     *bash.Shell
}

func newReader(ctx context.Context, name string) *reader {
	GinkgoHelper()
	r := &reader{page: name, folder: GinkgoT().TempDir()}
	// A page may use what a checkout has.
	checkout, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{"charts", "config", "examples"} {
		Expect(os.Symlink(filepath.Join(checkout, folder), filepath.Join(r.folder, folder))).To(Succeed())
	}
	scratch := GinkgoT().TempDir()
	r.namespace = createNamespace(ctx, name)
	r.shell, err = bash.Start(r.folder, scratch, []string{
		"HOME=" + scratch,
		"LANG=C.UTF-8",
		"KUBECONFIG=" + writeKubeconfig(scratch, r.namespace),
		"PATH=" + linkTools(scratch) + string(os.PathListSeparator) + os.Getenv("PATH"),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.shell.Stop)
	return r
}

// exampleOf returns the folder of an example whose page this is.
func exampleOf(name string) (folder string, is bool) {
	folder, is = strings.CutSuffix(name, "/README.md")
	return folder, is && strings.HasPrefix(folder, "examples/")
}

// removeExample deletes what a page that failed has left of its example outside of its
// namespace.
func (r *reader) removeExample(ctx context.Context, folder string) {
	if !CurrentSpecReport().Failed() {
		return // the page has done so
	}
	remove := exec.CommandContext(ctx, os.Getenv("KUBECTL"), "delete", "--namespace", r.namespace, "--ignore-not-found", "--wait=false",
		"--filename", filepath.Join(root, folder))
	output, err := remove.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
}

// createNamespace makes a namespace that goes with the page. Pods of examples have to be
// acceptable everywhere.
func createNamespace(ctx context.Context, name string) string {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred(), "KUBECONFIG is the lab's; run the suite with: make test-docs")
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	wanted := metav1.ObjectMeta{GenerateName: "docs-" + strings.ToLower(strings.TrimSuffix(filepath.Base(name), ".md")) + "-"}
	if folder, is := exampleOf(name); is {
		wanted.GenerateName = "docs-" + filepath.Base(folder) + "-"
		wanted.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	}
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: wanted}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error {
		return client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
	})
	return namespace.Name
}

// writeKubeconfig copies the kubeconfig, with another default namespace.
func writeKubeconfig(folder, namespace string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(folder, "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// linkTools makes a folder with the programs that readers have.
func linkTools(folder string) string {
	GinkgoHelper()
	bin := filepath.Join(folder, "bin")
	Expect(os.Mkdir(bin, 0o755)).To(Succeed())
	for name, path := range map[string]string{
		"kubectl":        os.Getenv("KUBECTL"),
		"helm":           os.Getenv("HELM"),
		"kubectl-insitu": filepath.Join(os.Getenv("INSITU_PLUGIN"), "kubectl-insitu"),
	} {
		path, err := filepath.Abs(path)
		Expect(errors.Join(err, os.Symlink(path, filepath.Join(bin, name)))).To(Succeed())
		Expect(path).To(BeAnExistingFile(), "%s, from KUBECTL, HELM, INSITU_PLUGIN; run the suite with: make test-docs", name)
	}
	return bin
}

// run runs a command of the page, which has to succeed.
func (r *reader) run(ctx context.Context, step page.Step) string {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	output, code, err := r.shell.Run(ctx, step.Command)
	output = strings.ReplaceAll(output, r.namespace, shownNamespace)
	GinkgoWriter.Printf("%s:%d (%.1f s)\n$ %s\n%s\n", r.page, step.Line, time.Since(began).Seconds(), step.Command, output)
	if err != nil {
		Fail(fmt.Sprintf("%s:%d: %v\n$ %s\nwhich printed\n%s", r.page, step.Line, err, step.Command, output))
	}
	if code != 0 {
		Fail(fmt.Sprintf("%s:%d: exit code %d of\n$ %s\nwhich printed\n%s", r.page, step.Line, code, step.Command, output))
	}
	return output
}

// compare holds the page to what it shows.
func (r *reader) compare(step page.Step, printed string) {
	GinkgoHelper()
	if !page.Match(step.Expected.Text, printed) {
		Fail(fmt.Sprintf("%s:%d: the output is not as in line %d. Of\n$ %s\nis expected\n%s\nand was printed\n%s",
			r.page, step.Line, step.Expected.Line, step.Command, step.Expected.Text, printed))
	}
}
