package tools_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// strict is a decoder that takes no field and no kind which the API does not know.
func strict(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// render is kubectl kustomize, and decodes what comes out.
func render(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	decoder := strict(t)
	var objects []runtime.Object
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", r.CurId(), err, text)
		}
		objects = append(objects, object)
	}
	return objects
}

// with writes a kustomization that uses an overlay and components, in a copy of
// deploy/, and renders it.
func with(t *testing.T, overlay string, components ...string) []runtime.Object {
	t.Helper()
	var text bytes.Buffer
	text.WriteString("resources: [../kubernetes/overlays/" + overlay + "]\n")
	if len(components) > 0 {
		text.WriteString("components:\n")
	}
	for _, c := range components {
		text.WriteString("  - ../" + c + "\n")
	}
	dir := filepath.Join(copyOfDeploy(t), "trial")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return render(t, dir)
}

// copyOfDeploy is a folder with what kustomize reads, to add to.
func copyOfDeploy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kubernetes", "prometheus"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("..", name))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// only gives the objects of one type.
func only[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// pods gives every pod template, by its object's name.
func pods(objects []runtime.Object) map[string]*core.PodTemplateSpec {
	found := map[string]*core.PodTemplateSpec{}
	for _, o := range objects {
		switch o := o.(type) {
		case *apps.Deployment:
			found["Deployment/"+o.Name] = &o.Spec.Template
		case *batch.Job:
			found["Job/"+o.Name] = &o.Spec.Template
		case *batch.CronJob:
			found["CronJob/"+o.Name] = &o.Spec.JobTemplate.Spec.Template
		}
	}
	return found
}
