package tools_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podapi "k8s.io/pod-security-admission/api"
	podpolicy "k8s.io/pod-security-admission/policy"
)

// overlays are the ways to run it, and what can be added to each.
func overlays() map[string][]string {
	const vault, monitoring = "kubernetes/components/vault", "prometheus"
	return map[string][]string{
		"cronjob": {}, "deployment": {}, "rebuild": {},
		"cronjob with Vault":    {vault},
		"deployment with all":   {vault, monitoring},
		"rebuild with Vault":    {vault},
		"cronjob with the rest": {monitoring},
	}
}

func overlay(name string) string {
	for _, known := range []string{"cronjob", "deployment", "rebuild"} {
		if len(name) >= len(known) && name[:len(known)] == known {
			return known
		}
	}
	return name
}

func TestEveryOverlayIsWhatTheAPIKnows(t *testing.T) {
	for name, components := range overlays() {
		t.Run(name, func(t *testing.T) {
			if n := len(with(t, overlay(name), components...)); n < 4 {
				t.Errorf("%d objects only", n)
			}
		})
	}
}

func TestAMisspeltFieldIsRefused(t *testing.T) {
	_, _, err := strict(t).Decode([]byte("apiVersion: batch/v1\nkind: CronJob\nspec: {concurencyPolicy: Forbid}\n"), nil, nil)
	if !runtime.IsStrictDecodingError(err) {
		t.Errorf("got %v", err)
	}
}

// The namespace may enforce the strictest of the Pod Security Standards.
func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	evaluator, err := podpolicy.NewEvaluator(podpolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podapi.LevelVersion{Level: podapi.LevelRestricted, Version: podapi.LatestVersion()}
	for name, components := range overlays() {
		for object, pod := range pods(with(t, overlay(name), components...)) {
			for _, r := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !r.Allowed {
					t.Errorf("%s: %s: %s: %s", name, object, r.ForbiddenReason, r.ForbiddenDetail)
				}
			}
		}
	}
}

// Beyond the standard: nothing to write to, no way to speak to Kubernetes, known
// needs.
func TestPodsCanDoNothingElse(t *testing.T) {
	for name, components := range overlays() {
		found := pods(with(t, overlay(name), components...))
		if len(found) != 1 {
			t.Fatalf("%s has %d pods", name, len(found))
		}
		for object, pod := range found {
			c := pod.Spec.Containers[0]
			if !*c.SecurityContext.ReadOnlyRootFilesystem || *pod.Spec.AutomountServiceAccountToken || *pod.Spec.EnableServiceLinks {
				t.Errorf("%s: %s: the root can be written, or a token or links are given", name, object)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s: resources %+v", name, object, c.Resources)
			}
			if tag := c.Image[len("ghcr.io/xiaoqu-sync/xiaoqu-sync"):]; tag == "" || tag == ":latest" {
				t.Errorf("%s: %s: image %s names no release", name, object, c.Image)
			}
			if hasToken := slices.ContainsFunc(pod.Spec.Volumes, projectsToken); hasToken != slices.Contains(components, "kubernetes/components/vault") {
				t.Errorf("%s: %s: a projected token: %v", name, object, hasToken)
			}
		}
	}
}

func projectsToken(v core.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p core.VolumeProjection) bool {
		return p.ServiceAccountToken != nil && p.ServiceAccountToken.Audience == "vault"
	})
}

// README's table of exit codes, as Jobs read it.
func TestJobsRetryWhatMayHelpAndNothingElse(t *testing.T) {
	jobs := map[string]batch.JobSpec{
		"cronjob": only[*batch.CronJob](with(t, "cronjob"))[0].Spec.JobTemplate.Spec,
		"rebuild": only[*batch.Job](with(t, "rebuild"))[0].Spec,
	}
	want := map[int32]batch.PodFailurePolicyAction{
		1: batch.PodFailurePolicyActionFailJob, 2: batch.PodFailurePolicyActionFailJob, 3: batch.PodFailurePolicyActionCount,
		4: batch.PodFailurePolicyActionFailJob, 5: batch.PodFailurePolicyActionFailJob, 6: batch.PodFailurePolicyActionFailJob,
		7: batch.PodFailurePolicyActionCount, 8: batch.PodFailurePolicyActionFailJob, 9: batch.PodFailurePolicyActionFailJob,
		10: batch.PodFailurePolicyActionFailJob,
	}
	for name, job := range jobs {
		rules := job.PodFailurePolicy.Rules
		// A drained node comes before any exit code, 130 and 143 among them.
		if c := rules[0].OnPodConditions; rules[0].Action != batch.PodFailurePolicyActionIgnore || c[0].Type != core.DisruptionTarget {
			t.Errorf("%s: the first rule is %+v", name, rules[0])
		}
		got := map[int32]batch.PodFailurePolicyAction{}
		for _, r := range rules[1:] {
			for _, code := range r.OnExitCodes.Values {
				got[code] = r.Action
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if job.Template.Spec.RestartPolicy != core.RestartPolicyNever || *job.BackoffLimit < 1 || *job.ActiveDeadlineSeconds < 3600 {
			t.Errorf("%s: restart %s, backoff %d, deadline %d", name, job.Template.Spec.RestartPolicy, *job.BackoffLimit, *job.ActiveDeadlineSeconds)
		}
	}
}

func TestTheCronJobNeverOverlapsItself(t *testing.T) {
	spec := only[*batch.CronJob](with(t, "cronjob"))[0].Spec
	if spec.ConcurrencyPolicy != batch.ForbidConcurrent || *spec.StartingDeadlineSeconds < 10 {
		t.Errorf("%s, deadline %d", spec.ConcurrencyPolicy, *spec.StartingDeadlineSeconds)
	}
	if _, err := time.LoadLocation(*spec.TimeZone); err != nil {
		t.Error(err)
	}
}

// A policy without a selector would hold for the whole namespace.
func TestNetworkPoliciesAreForOurPodsAlone(t *testing.T) {
	for _, name := range []string{"cronjob", "deployment"} {
		objects := with(t, name)
		for _, p := range only[*networking.NetworkPolicy](objects) {
			for object, pod := range pods(objects) {
				if diff := cmp.Diff(pod.Labels, p.Spec.PodSelector.MatchLabels); diff != "" {
					t.Errorf("%s: %s (-labels +selector):\n%s", p.Name, object, diff)
				}
			}
		}
	}
}
