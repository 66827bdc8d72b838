// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// The model below is written without the package's own types, and knows of the API
// server no more than this test needs.

// key is where a size is: a container, or the pod for the empty name.
type key struct {
	container, list, resource string
}

// model is a pod as the API server has it: its containers in order, and their sizes
// in thousandths.
type model struct {
	plain, sidecars, containers []string
	sizes                       map[key]int64
}

func modelOf(spec *corev1.PodSpec) model {
	m := model{sizes: map[key]int64{}}
	put := func(name string, resources corev1.ResourceRequirements) {
		for resource, size := range resources.Requests {
			m.sizes[key{name, "requests", string(resource)}] = size.MilliValue()
		}
		for resource, size := range resources.Limits {
			m.sizes[key{name, "limits", string(resource)}] = size.MilliValue()
		}
	}
	if spec.Resources != nil {
		put("", *spec.Resources)
	}
	for _, c := range spec.InitContainers {
		put(c.Name, c.Resources)
		if c.RestartPolicy != nil {
			m.sidecars = append(m.sidecars, c.Name)
		} else {
			m.plain = append(m.plain, c.Name)
		}
	}
	for _, c := range spec.Containers {
		put(c.Name, c.Resources)
		m.containers = append(m.containers, c.Name)
	}
	return m
}

func (m model) clone() model {
	m.sizes = maps.Clone(m.sizes)
	return m
}

// keys are in order: what the dice say must not depend on that of a map.
func (m model) keys() []key {
	return slices.SortedFunc(maps.Keys(m.sizes), func(a, b key) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

func (m model) all() []string {
	return slices.Concat(m.plain, m.sidecars, m.containers)
}

// sum is what a pod needs of a resource: that of what runs for good or, if it is
// more, of one init container. All of these come before the sidecars in this test.
func (m model) sum(list, resource string) (total int64, some bool) {
	for _, name := range slices.Concat(m.sidecars, m.containers) {
		size, ok := m.sizes[key{name, list, resource}]
		total, some = total+size, some || ok
	}
	for _, name := range m.plain {
		size, ok := m.sizes[key{name, list, resource}]
		total, some = max(total, size), some || ok
	}
	return total, some
}

func (m model) podLevel() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(m.sizes)), func(k key) bool { return k.container == "" })
}

// complete does what the server does with every pod that it stores.
func (m model) complete() model {
	missing := func(k key) bool { _, ok := m.sizes[k]; return !ok }
	for _, resource := range []string{"cpu", "memory"} {
		for _, name := range m.all() {
			request := key{name, "requests", resource}
			if limit, ok := m.sizes[key{name, "limits", resource}]; ok && missing(request) {
				m.sizes[request] = limit
			}
		}
	}
	if !m.podLevel() {
		return m
	}
	for _, resource := range []string{"cpu", "memory"} {
		request, limit := key{"", "requests", resource}, key{"", "limits", resource}
		if total, some := m.sum("requests", resource); some && missing(request) {
			m.sizes[request] = total
		}
		if !missing(limit) && missing(request) {
			m.sizes[request] = m.sizes[limit]
		}
		unlimited := slices.ContainsFunc(m.all(), func(name string) bool { return missing(key{name, "limits", resource}) })
		if !missing(request) && missing(limit) && !unlimited {
			total, _ := m.sum("limits", resource)
			m.sizes[limit] = max(m.sizes[request], total)
		}
	}
	return m
}

func (m model) class() string {
	if len(m.sizes) == 0 {
		return "BestEffort"
	}
	names := m.all()
	if m.podLevel() {
		names = []string{""}
	}
	for _, name := range names {
		for _, resource := range []string{"cpu", "memory"} {
			limit, ok := m.sizes[key{name, "limits", resource}]
			if !ok || m.sizes[key{name, "requests", resource}] != limit {
				return "Burstable"
			}
		}
	}
	return "Guaranteed"
}

// invalid says why the server would not store a pod; nil if it would.
func (m model) invalid() error {
	for k, request := range m.sizes {
		if limit, ok := m.sizes[key{k.container, "limits", k.resource}]; ok && k.list == "requests" && request > limit {
			return fmt.Errorf("%v: must be less than or equal to the limit", k)
		}
	}
	for _, resource := range []string{"cpu", "memory"} {
		total, _ := m.sum("requests", resource)
		if room, ok := m.sizes[key{"", "requests", resource}]; ok && total > room {
			return fmt.Errorf("%s: must be greater than or equal to aggregate container requests", resource)
		}
		for _, name := range m.containers {
			room, ok := m.sizes[key{"", "limits", resource}]
			if ok && m.sizes[key{name, "limits", resource}] > room {
				return fmt.Errorf("%s of %s: must be less than or equal to pod limits", resource, name)
			}
		}
	}
	return nil
}

// resize is what the server makes of a patch of pods/resize, and which keys it
// names.
func (m model) resize(body []byte) (model, map[key]int64, error) {
	type resources map[string]map[string]string
	type item struct {
		Name      string
		Resources resources
	}
	patch := struct {
		Spec struct {
			Resources                  resources
			InitContainers, Containers []item
		}
	}{}
	if err := json.Unmarshal(body, &patch); err != nil {
		return m, nil, err
	}
	named := map[key]int64{}
	read := func(list []item, known []string) error {
		for _, i := range list {
			if !slices.Contains(known, i.Name) {
				return fmt.Errorf("no container %q", i.Name)
			}
			for list, sizes := range i.Resources {
				for name, text := range sizes {
					size, err := resource.ParseQuantity(text)
					if err != nil { // also where the patch removes a key: null is empty here
						return err
					}
					named[key{i.Name, list, name}] = size.MilliValue()
				}
			}
		}
		return nil
	}
	next := m.clone()
	err := errors.Join(
		read([]item{{Resources: patch.Spec.Resources}}, []string{""}),
		read(patch.Spec.InitContainers, m.sidecars),
		read(patch.Spec.Containers, m.containers),
	)
	maps.Copy(next.sizes, named)
	next.complete()
	if before, after := m.class(), next.class(); before != after {
		err = errors.Join(err, fmt.Errorf("from %s to %s", before, after))
	}
	return next, named, errors.Join(err, next.invalid())
}

// wishes are what is wanted, in the terms of the model.
type wishes struct {
	from, to model
	begun    map[key]bool
	answered map[key]int64
	enforce  bool
	// derived are the keys of the pod that its template leaves to the server.
	derived map[key]bool
}

// end is what a wish makes of a pod, key by key.
func (w wishes) end(live model) (end model, reason RefusalReason) {
	end = live.clone()
	everywhere := sets.KeySet(live.sizes).Union(sets.KeySet(w.from.sizes)).Union(sets.KeySet(w.to.sizes))
	for k := range everywhere {
		if slices.Contains(live.plain, k.container) {
			continue
		}
		_, there := live.sizes[k]
		_, inFrom := w.from.sizes[k]
		size, inTo := w.to.sizes[k]
		switch {
		case !inTo && there && inFrom:
			return live, Removed
		case inTo && !w.derived[k] && w.concerns(live, k, size):
			end.sizes[k] = size
		}
	}
	named, derived := end.clone(), w.derive(end)
	for k := range everywhere {
		now, there := live.sizes[k]
		size, follows := derived.sizes[k]
		_, inTo := w.to.sizes[k]
		follows = follows && k.container == ""
		switch {
		case slices.Contains(live.plain, k.container):
		case !inTo && there && w.begun[k] && !follows:
			return live, Removed
		case !there || !w.derived[k] || !w.concerns(live, k, size):
		case !follows:
			return live, Removed
		case named.differs(live, k.resource) || w.derive(w.all(live)).sizes[k] != now:
			end.sizes[k] = size
		}
	}
	if maps.Equal(end.sizes, live.sizes) {
		return live, ""
	}
	if end.complete().class() != live.class() {
		return end, OtherQOSClass
	}
	return end, ""
}

// concerns reports whether a key is to be of a size.
func (w wishes) concerns(live model, k key, size int64) bool {
	now, there := live.sizes[k]
	old, inFrom := w.from.sizes[k]
	kept, isAnswered := w.answered[k]
	switch {
	case !inFrom || old != w.to.sizes[k]:
		return true
	case isAnswered && there && now == kept && w.from.sizes[k] == size:
		return false
	default:
		return w.enforce || w.begun[k]
	}
}

// derive is what the server makes of a pod that has only those keys of its own that
// its template names.
func (w wishes) derive(of model) model {
	of = of.clone()
	room := of.podLevel()
	maps.DeleteFunc(of.sizes, func(k key, _ int64) bool {
		_, inTo := w.to.sizes[k]
		return k.container == "" && (!inTo || w.derived[k])
	})
	if !room {
		return of
	}
	return of.complete()
}

// all is a pod with all that is wanted of its containers.
func (w wishes) all(live model) model {
	live = live.clone()
	for k, size := range w.to.sizes {
		if !slices.Contains(live.plain, k.container) {
			live.sizes[k] = size
		}
	}
	return live
}

// differs reports whether two pods differ in a resource.
func (m model) differs(other model, resource string) bool {
	of := func(sizes map[key]int64) map[key]int64 {
		sizes = maps.Clone(sizes)
		maps.DeleteFunc(sizes, func(k key, _ int64) bool { return k.resource != resource })
		return sizes
	}
	return !maps.Equal(of(m.sizes), of(other.sizes))
}

// dice make random pods.
type dice struct {
	*rand.Rand
}

func (d dice) one(in int) bool {
	return d.IntN(in) == 0
}

// size is a random size of a resource, in one of its spellings.
func (d dice) size(name corev1.ResourceName) resource.Quantity {
	n := 1 + d.IntN(4)
	if name == corev1.ResourceCPU {
		return resource.MustParse([]string{fmt.Sprintf("%d00m", n), fmt.Sprintf("0.%d", n)}[d.IntN(2)])
	}
	return resource.MustParse([]string{fmt.Sprintf("%dMi", 32*n), fmt.Sprintf("%dKi", 32*1024*n)}[d.IntN(2)])
}

// vary changes, adds and, more rarely, removes sizes.
func (d dice) vary(resources *corev1.ResourceRequirements, add, change, remove int) {
	for _, list := range []*corev1.ResourceList{&resources.Requests, &resources.Limits} {
		for _, name := range resizable {
			_, ok := (*list)[name]
			switch {
			case !ok && add > 0 && d.one(add), ok && d.one(change):
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[name] = d.size(name)
			case ok && remove > 0 && d.one(remove):
				delete(*list, name)
			}
		}
	}
}

func (d dice) varyAll(spec *corev1.PodSpec, add, change, remove int) *corev1.PodSpec {
	spec = spec.DeepCopy()
	for i := range spec.Containers {
		d.vary(&spec.Containers[i].Resources, add, change, remove)
	}
	for i := range spec.InitContainers {
		if spec.InitContainers[i].RestartPolicy != nil {
			d.vary(&spec.InitContainers[i].Resources, add, change, remove)
		}
	}
	if spec.Resources != nil {
		d.vary(spec.Resources, add, change, remove)
		for _, list := range []corev1.ResourceList{spec.Resources.Requests, spec.Resources.Limits} {
			for _, name := range resizable { // most often there is room
				if size, ok := list[name]; ok && d.one(2) {
					size.Mul(int64(1 + d.IntN(3)))
					list[name] = size
				}
			}
		}
	}
	return spec
}

// template is a random template. It need not be valid.
func (d dice) template() *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	if d.one(4) {
		setup := corev1.Container{Name: "setup"}
		d.vary(&setup.Resources, 3, 1, 0)
		spec.InitContainers = append(spec.InitContainers, setup)
	}
	if d.one(2) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{
			Name: "side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), ResizePolicy: d.resizePolicy(),
		})
	}
	for _, name := range []string{"a", "b", "c"}[:1+d.IntN(3)] {
		spec.Containers = append(spec.Containers, corev1.Container{Name: name, ResizePolicy: d.resizePolicy()})
	}
	if d.one(3) {
		spec.Resources = &corev1.ResourceRequirements{}
	}
	return d.varyAll(spec, 1+d.IntN(3), 1, 0)
}

func (d dice) resizePolicy() []corev1.ContainerResizePolicy {
	var policy []corev1.ContainerResizePolicy
	for _, name := range resizable {
		restart := corev1.NotRequired
		if d.one(4) {
			restart = corev1.RestartContainer
		}
		policy = append(policy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: restart})
	}
	return policy
}

// stored is a pod as the server completes it, in the types of the API.
func stored(spec *corev1.PodSpec, sizes model) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	pod.UID, pod.ResourceVersion = "uid-1", "7"
	for k, size := range sizes.sizes {
		if pod.Spec.Resources == nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{}
		}
		resources := pod.Spec.Resources
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].Name == k.container {
					resources = &list[i].Resources
				}
			}
		}
		list := &resources.Requests
		if k.list == "limits" {
			list = &resources.Limits
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceName(k.resource)] = *resource.NewMilliQuantity(size, resource.DecimalSI)
	}
	return pod
}

func fieldAt(k key) Field {
	return Field{
		Container: k.container, Sidecar: k.container == "side", Limit: k.list == "limits", Resource: corev1.ResourceName(k.resource),
	}
}

// TestRandomWishes makes random changes of random pods and applies them to the
// model of the server, part by part.
func TestRandomWishes(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(2000) {
		randomWish(t, dice{rand.New(rand.NewPCG(seed, 0))}, seed, seen)
	}
	t.Log(seen)
	for what, least := range map[string]int{
		"changed": 1000, "drifted": 200, "with sizes of the pod": 200, "refused: ResizeRemoved": 50, "refused: ResizeQOSClass": 50,
		"in parts": 200, "in three parts": 50, "at once, as the parts are refused": 20, "not valid in the end": 20,
	} {
		if seen[what] < least {
			t.Errorf("%d pods were %s, expected %d at least", seen[what], what, least)
		}
	}
}

// valid returns one of random templates that the server accepts; a few times one
// that it does not, where that is asked for.
func (d dice) valid(orNot bool, random func() *corev1.PodSpec) *corev1.PodSpec {
	orNot = orNot && d.one(20)
	for {
		if spec := random(); orNot || modelOf(spec).complete().invalid() == nil {
			return spec
		}
	}
}

func randomWish(t *testing.T, d dice, seed uint64, seen map[string]int) {
	t.Helper()
	g := NewWithT(t)
	from := d.valid(false, d.template)
	base := from.DeepCopy()
	if base.Resources == nil && d.one(5) {
		base.Resources = &corev1.ResourceRequirements{}
	}
	remove := 0
	if d.one(5) {
		remove = 8
	}
	to := d.valid(true, func() *corev1.PodSpec { return d.varyAll(base, 4, 2, remove) })
	wish := wishes{
		from: modelOf(from).complete(), to: modelOf(to).complete(),
		begun: map[key]bool{}, answered: map[key]int64{}, enforce: d.one(4), derived: map[key]bool{},
	}
	for field := range Derived(to) {
		wish.derived[key{field.Container, field.list(), string(field.Resource)}] = true
	}
	live := wish.from.clone()
	if d.one(2) { // another client resizes it
		drifted := modelOf(d.varyAll(&stored(from, live).Spec, 12, 4, 0)).complete()
		if drifted.invalid() == nil && drifted.class() == live.class() {
			live = drifted
			seen["drifted"]++
		}
	}
	begun := sets.New[Field]()
	answered := Amounts{}
	for _, k := range live.keys() {
		size := live.sizes[k]
		if _, named := wish.to.sizes[k]; d.one(4) && (named || d.one(10)) && k.container != "setup" {
			wish.begun[k] = true
			begun.Insert(fieldAt(k))
			if d.one(2) {
				wish.answered[k] = size
				answered[fieldAt(k)] = *resource.NewMilliQuantity(size, resource.DecimalSI)
			}
		}
	}
	pod := stored(from, live)
	explain := func() string {
		return fmt.Sprintf("seed %d\nfrom %v\nto   %v\nlive %v\nbegun %v", seed, wish.from, wish.to, live, wish.begun)
	}

	for template, want := range map[*corev1.PodSpec]model{from: wish.from, to: wish.to} {
		found := map[key]int64{}
		for field, size := range InTemplate(template) {
			found[key{field.Container, field.list(), string(field.Resource)}] = size.MilliValue()
		}
		maps.DeleteFunc(want.sizes, func(k key, _ int64) bool { return k.container == "setup" })
		g.Expect(found).To(Equal(want.sizes), explain)
	}

	change, refused := Compare(pod, Wish{
		From: InTemplate(from), To: InTemplate(to), Derived: Derived(to), Begun: begun,
		Asked: InTemplate(from), Answered: answered, Enforce: wish.enforce,
	})
	end, reason := wish.end(live)
	if reason != "" {
		g.Expect(refused).NotTo(BeNil(), explain)
		g.Expect(refused.Reason).To(Equal(reason), explain)
		seen["refused: "+string(reason)]++
		return
	}
	g.Expect(refused).To(BeNil(), explain)
	if maps.Equal(end.sizes, live.sizes) {
		g.Expect(change).To(BeEmpty(), explain)
		return
	}
	g.Expect(change).NotTo(BeEmpty(), explain)
	seen["changed"]++
	if live.podLevel() {
		seen["with sizes of the pod"]++
	}

	before, with, after := change.Split(pod, nil, nil)
	current := live
	written := map[key]int64{}
	parts := 0
	for part, some := range []Change{before, with, after} {
		if len(some) == 0 {
			continue
		}
		parts++
		body, err := some.Patch(pod)
		g.Expect(err).NotTo(HaveOccurred())
		next, named, err := current.resize(body)
		if end.invalid() != nil {
			seen["not valid in the end"]++
			return
		}
		g.Expect(err).NotTo(HaveOccurred(), explain)
		for k, size := range named {
			g.Expect(written).NotTo(HaveKey(k), explain)
			written[k] = size
			old, there := live.sizes[k]
			grows := there && size > old || !there && k.list == "requests"
			g.Expect(there && size == old).To(BeFalse(), explain)
			g.Expect(part == 0 && !grows || part == 2 && grows).To(BeFalse(), explain)
		}
		current = next
	}
	if parts > 1 {
		seen["in parts"]++
	}
	if parts > 2 {
		seen["in three parts"]++
	}
	if len(with) == len(change) && slices.ContainsFunc(change, func(delta Delta) bool { return !delta.Restarts }) {
		seen["at once, as the parts are refused"]++
	} else {
		for _, delta := range change {
			g.Expect(slices.Contains(with, delta)).To(Equal(delta.Restarts), explain)
		}
	}
	for k, size := range end.sizes {
		if k.container == "" && written[k] == 0 && live.sizes[k] == 0 {
			continue // the server added it in between
		}
		g.Expect(current.sizes).To(HaveKeyWithValue(k, size), explain)
	}
	for k, size := range current.sizes {
		_, inFrom := wish.from.sizes[k]
		_, inTo := wish.to.sizes[k]
		if old, there := live.sizes[k]; there && !inFrom && !inTo {
			g.Expect(size).To(Equal(old), explain)
		}
	}
}
