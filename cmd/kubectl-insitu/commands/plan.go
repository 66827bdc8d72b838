// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/openapi3"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/diff"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	kubectlscheme "k8s.io/kubectl/pkg/scheme"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// planOptions are the flags of the command plan.
type planOptions struct {
	*environment
	output           render.Output
	files            resource.FilenameOptions
	images           []string
	requests, limits string
	containers       string
	serverSide       bool
	fieldManager     string
	forceConflicts   bool
	detailedExitCode bool
	pull             bool
	pullTimeout      time.Duration
}

func newPlanCommand(env *environment) *cobra.Command {
	o := &planOptions{environment: env}
	command := &cobra.Command{
		Use:   "plan (-f FILE | KIND/NAME [--image CONTAINER=IMAGE] [--requests ...] [--limits ...])",
		Short: "Say what would come of a change, before it is applied",
		Long: templates.LongDesc(`
			Says what would come of a change: of each pod whether it is changed in place or recreated and
			why, which containers restart, whether the nodes and the quotas have room for new sizes, which
			claims cannot grow, and who would refuse. Nothing is written: the API server is asked by dry
			runs, and the operator's own decision is made on what it answers.

			With --pull, the nodes of pods that would be changed in place pull the images that they do not
			have: for that a pod is made on each, which runs nothing, and deleted.

			The exit code is 0; with --detailed-exitcode, 8 if pods would be recreated, some of the
			change is refused or cannot be made, or an image was not pulled.`),
		Example: templates.Examples(`
			# What kubectl apply -f would do
			kubectl insitu plan -f web.yaml

			kubectl insitu plan deployment/web --image main=nginx:1.29
			kubectl insitu plan deployment/web --image main=nginx:1.29 --pull
			kubectl insitu plan statefulset/db --container=main --limits=memory=2Gi`),
		ValidArgsFunction: env.completeWorkloads,
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), args)
		},
	}
	o.output.AddFlag(command.Flags())
	cmdutil.AddFilenameOptionFlags(command, &o.files, "that contains the workloads as they are to be applied")
	command.Flags().StringArrayVar(&o.images, "image", nil, "a new image, as CONTAINER=IMAGE; * stands for all containers")
	command.Flags().StringVar(&o.requests, "requests", "", "new requests, such as cpu=200m,memory=512Mi")
	command.Flags().StringVar(&o.limits, "limits", "", "new limits, such as memory=1Gi")
	command.Flags().StringVarP(&o.containers, "container", "c", "", "the container whose requests and limits change; without it, all")
	command.Flags().BoolVar(&o.serverSide, "server-side", false, "plan what kubectl apply --server-side does with the file")
	command.Flags().StringVar(&o.fieldManager, "field-manager", "",
		"the name of the manager of the fields that are applied; without it, that of kubectl apply")
	command.Flags().BoolVar(&o.forceConflicts, "force-conflicts", false, "with --server-side: take fields over that others manage")
	command.Flags().BoolVar(&o.pull, "pull", false, "have the nodes pull the images that they do not have, and say what comes of it")
	command.Flags().DurationVar(&o.pullTimeout, "pull-timeout", 2*time.Minute, "how long each node may take to pull")
	command.Flags().BoolVar(&o.detailedExitCode, "detailed-exitcode", false, "exit with 8 if pods would be recreated, the change is refused or cannot be made, or an image was not pulled")
	return command
}

func (o *planOptions) run(ctx context.Context, args []string) error {
	if o.pullTimeout < time.Second {
		return fmt.Errorf("flag --pull-timeout: found %s, accepted is a time from 1s", o.pullTimeout)
	}
	isFile := len(o.files.Filenames) > 0 || o.files.Kustomize != ""
	var plans []report.Plan
	var err error
	switch {
	case isFile && len(args) > 0:
		return errors.New("found a file and a workload: accepted is one of them")
	case isFile:
		plans, err = o.planFiles(ctx)
	case len(args) == 0:
		return errors.New("found no file and no workload: accepted is -f FILE, or KIND/NAME with --image, --requests or --limits")
	default:
		plans, err = o.planChange(ctx, args)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(o.show(plans), ctx.Err()); err != nil {
		return err
	}
	if o.detailedExitCode && disrupts(plans) {
		return exitError(ExitDisrupts)
	}
	return nil
}

// show prints plans.
func (o *planOptions) show(plans []report.Plan) error {
	if o.output.ForPrograms() {
		names := make([]report.Ref, len(plans))
		for i := range plans {
			names[i] = plans[i].Workload
		}
		return o.output.Print(o.Out, plans, names...)
	}
	for i := range plans {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := render.Plan(o.Out, plans[i], render.OptionsFor(o.Out, time.Now())); err != nil {
			return err
		}
	}
	return nil
}

// disrupts reports whether pods would be recreated, or something is refused or cannot be.
func disrupts(plans []report.Plan) bool {
	for i := range plans {
		if len(plans[i].Refusals) > 0 {
			return true
		}
		isDisrupted := func(pod report.PlannedPod) bool {
			return pod.Way == report.Recreate || pod.Way == report.Refused || pod.Feasibility == report.Infeasible
		}
		if slices.ContainsFunc(plans[i].Pods, isDisrupted) {
			return true
		}
		if slices.ContainsFunc(plans[i].Claims, func(claim report.PlannedClaim) bool { return claim.Blocked }) {
			return true
		}
		isMissing := func(pull report.TriedPull) bool {
			return pull.Result != report.OnNode && pull.Result != report.Pulled && pull.Result != report.NotTried
		}
		if slices.ContainsFunc(plans[i].Pulls, isMissing) {
			return true
		}
	}
	return false
}

// planChange plans the change that the flags say.
func (o *planOptions) planChange(ctx context.Context, args []string) ([]report.Plan, error) {
	edit, err := o.edit()
	if err != nil {
		return nil, err
	}
	c, found, err := o.find(ctx, args)
	if err != nil {
		return nil, err
	}
	plan, err := planEdit(ctx, c, found, edit, o.planFor(c))
	return []report.Plan{plan}, err
}

// planFunc plans a change of a workload that the API server accepts.
type planFunc func(ctx context.Context, found cluster.Found, changed client.Object) (report.Plan, error)

// planFor returns how the flags say that changes are planned.
func (o *planOptions) planFor(c *cluster.Cluster) planFunc {
	if !o.pull {
		return c.Plan
	}
	return func(ctx context.Context, found cluster.Found, changed client.Object) (report.Plan, error) {
		return c.PlanAndPull(ctx, found, changed, o.pullTimeout, func(words string) { fmt.Fprintln(o.ErrOut, words) })
	}
}

// planEdit plans an edit of a workload.
func planEdit(ctx context.Context, c *cluster.Cluster, found cluster.Found, edit change.Edit, plan planFunc) (report.Plan, error) {
	writer := change.Writer{Client: c.Client, FieldManager: fieldManager, DryRun: change.ServerDryRun}
	result, err := writer.Write(ctx, found.Kind, client.ObjectKeyFromObject(found.Object), edit)
	if err != nil {
		return refusedPlan(found, err)
	}
	changed := found.Kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object.Object, changed); err != nil {
		return report.Plan{}, fmt.Errorf("read %s: %w", found, err)
	}
	return plan(ctx, found, changed)
}

// refusedPlan returns the plan of a change that the API server refuses. That the user may
// not make it at all is an error, and no plan.
func refusedPlan(found cluster.Found, err error) (report.Plan, error) {
	isRefused := apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) && !cluster.IsForWantOfRights(err)
	if !isRefused {
		return report.Plan{}, cluster.Explain(err)
	}
	return report.Plan{
		Workload: report.RefOf(found.Kind.GroupVersionKind, found.Object), Changes: []string{}, Pods: []report.PlannedPod{},
		Refusals: []string{err.Error()},
	}, nil
}

// edit returns the edit that the flags say.
func (o *planOptions) edit() (change.Edit, error) {
	var edits []change.Edit
	if len(o.images) > 0 {
		images, err := change.ParseImages(o.images)
		if err != nil {
			return nil, err
		}
		edits = append(edits, change.SetImages(images))
	}
	if o.requests != "" || o.limits != "" {
		resources, err := o.resources()
		if err != nil {
			return nil, err
		}
		edits = append(edits, change.SetResources(resources))
	}
	if len(edits) == 0 {
		return nil, errors.New("found no change: accepted are --image, --requests, --limits, or a file with -f")
	}
	return change.All(edits...), nil
}

// resources returns the requests and limits that the flags say.
func (o *planOptions) resources() (change.Resources, error) {
	requests, err := change.ParseResources(o.requests)
	if err != nil {
		return change.Resources{}, fmt.Errorf("flag --requests: %w", err)
	}
	limits, err := change.ParseResources(o.limits)
	if err != nil {
		return change.Resources{}, fmt.Errorf("flag --limits: %w", err)
	}
	return change.Resources{Containers: o.containers, Requests: requests, Limits: limits}, nil
}

// planFiles plans what kubectl apply would do with the workloads of files.
func (o *planOptions) planFiles(ctx context.Context) ([]report.Plan, error) {
	c, namespace, err := o.connect()
	if err != nil {
		return nil, err
	}
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(o.flags))
	enforced := o.flags.Namespace != nil && *o.flags.Namespace != ""
	infos, err := factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(enforced, &o.files).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var plans []report.Plan
	for _, info := range infos {
		kind, known := kinds.Of(info.Object)
		if !known {
			fmt.Fprintf(o.ErrOut, "%s is no workload: left out\n", info.ObjectName())
			continue
		}
		plan, err := o.planInfo(ctx, c, factory, kind, info)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 {
		return nil, errors.New("found no workload in the files: accepted are " + kinds.Spellings())
	}
	return plans, nil
}

// managerOfKubectl returns whom kubectl apply names as the manager of fields.
func (o *planOptions) managerOfKubectl() string {
	if o.serverSide {
		return "kubectl"
	}
	return apply.FieldManagerClientSideApply
}

// planInfo plans what kubectl apply would do with one object of a file.
func (o *planOptions) planInfo(
	ctx context.Context, c *cluster.Cluster, factory cmdutil.Factory, kind kinds.Kind, info *resource.Info,
) (report.Plan, error) {
	local := info.Object.DeepCopyObject()
	found := cluster.Found{Kind: kind, Object: kind.New()}
	found.Object.SetNamespace(info.Namespace)
	found.Object.SetName(info.Name)
	isNew := false
	if err := info.Get(); apierrors.IsNotFound(err) {
		isNew, info.Object = true, nil
	} else if err != nil {
		return report.Plan{}, cluster.Explain(fmt.Errorf("read %s: %w", found, err))
	}
	schema, err := factory.OpenAPIV3Client()
	if err != nil {
		return report.Plan{}, fmt.Errorf("read the schema of the API server: %w", err)
	}
	merged, err := diff.InfoObject{
		LocalObj: local, Info: info, Encoder: kubectlscheme.DefaultJSONEncoder(), OpenAPIGetter: factory,
		OpenAPIV3Root: openapi3.NewRoot(schema), Force: true, ServerSideApply: o.serverSide, ForceConflicts: o.forceConflicts,
		FieldManager: cmp.Or(o.fieldManager, o.managerOfKubectl()), IOStreams: o.IOStreams,
	}.Merged()
	if err != nil {
		return refusedPlan(found, err)
	}
	if isNew {
		return report.Plan{
			Workload: report.RefOf(kind.GroupVersionKind, found.Object), Changes: []string{}, Pods: []report.PlannedPod{},
			Notes: []string{"there is no such workload: it would be created, with all its pods"},
		}, nil
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(found.Object), found.Object); err != nil {
		return report.Plan{}, fmt.Errorf("read %s: %w", found, err)
	}
	changed := kind.New()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, changed)
	}
	if err != nil {
		return report.Plan{}, fmt.Errorf("read %s: %w", found, err)
	}
	return o.planFor(c)(ctx, found, changed)
}
