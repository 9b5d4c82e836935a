package provider

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tocsin.dev/go/tocsin"
)

// program is the terraform or tofu that TF_ACC_TERRAFORM_PATH names, or that is on the path; without any, the test is
// skipped.
func program(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("TF_ACC_TERRAFORM_PATH"); named != "" {
		return named
	}
	for _, name := range []string{"terraform", "tofu"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("there is no terraform or tofu: install one, or name it in TF_ACC_TERRAFORM_PATH")
	return ""
}

// workspace is a folder with a configuration, whose provider was built from these sources.
type workspace struct {
	*testing.T
	program, folder string
	environment     []string
}

func newWorkspace(t *testing.T) *workspace {
	w := &workspace{T: t, program: program(t), folder: t.TempDir()}
	mirror := t.TempDir()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	plugin := filepath.Join(mirror, filepath.FromSlash(Address), tocsin.Version, platform,
		"terraform-provider-tocsin_v"+tocsin.Version)
	build := exec.Command("go", "build", "-o", plugin, "../..")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s %s", printed, err)
	}
	settings := filepath.Join(t.TempDir(), "terraform.rc")
	w.write(settings, `provider_installation {
  filesystem_mirror { path = "`+filepath.ToSlash(mirror)+`" }
}
`)
	w.environment = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"TF_INPUT=0",
		"TOCSIN_URL="+running.URL, "TOCSIN_KEY=", "TOCSIN_KEY_FILE=")
	return w
}

func (w *workspace) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// configure writes the configuration.
func (w *workspace) configure(text string) {
	w.Helper()
	w.write(filepath.Join(w.folder, "main.tf"), text)
}

// run runs a command, which ends with this code, and returns what it printed.
func (w *workspace) run(code int, arguments ...string) string {
	w.Helper()
	command := exec.Command(w.program, append(arguments, "-no-color")...)
	command.Dir, command.Env = w.folder, w.environment
	printed, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	if command.ProcessState.ExitCode() != code {
		w.Fatalf("%v: exit code %d, not %d: %s", arguments, command.ProcessState.ExitCode(), code, printed)
	}
	return string(printed)
}

func (w *workspace) apply() string { w.Helper(); return w.run(0, "apply", "-auto-approve") }

// same fails unless a plan has no changes.
func (w *workspace) same() { w.Helper(); w.run(0, "plan", "-detailed-exitcode") }

// differs fails unless a plan has changes, with this text.
func (w *workspace) differs(text string) {
	w.Helper()
	if printed := w.run(2, "plan", "-detailed-exitcode"); !strings.Contains(printed, text) {
		w.Errorf("the plan has no %q: %s", text, printed)
	}
}

// without fails if a file of the workspace has a text: the state, its backup, saved plans, also in archives.
func (w *workspace) without(mark string) {
	w.Helper()
	searched := 0
	err := filepath.WalkDir(w.folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		searched++
		if archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content))); err == nil {
			for _, file := range archive.File {
				part, err := file.Open()
				if err != nil {
					return err
				}
				inside, err := io.ReadAll(part)
				if err != nil {
					return err
				}
				content = append(content, inside...)
			}
		}
		if bytes.Contains(content, []byte(mark)) {
			w.Errorf("%s has the secret", name)
		}
		return nil
	})
	if err != nil || searched < 3 {
		w.Fatal("the files were not searched", searched, err)
	}
}

// pageConfiguration is what the guide shows.
func pageConfiguration(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/how-to/terraform.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllSubmatch(page, -1)
	text := ""
	for _, block := range blocks {
		text += string(block[1])
	}
	if len(blocks) != 2 {
		t.Fatal("the guide has other blocks", len(blocks))
	}
	return text
}

func TestAcceptance(t *testing.T) {
	w := newWorkspace(t)
	client := running.Client()
	w.environment = append(w.environment, "TF_VAR_token=planted-secret-of-24-byte")
	configuration := strings.ReplaceAll(pageConfiguration(t), `"168h"`, `"168h"
  secret     = "whsec_${base64encode(var.token)}"
  on_failure = { secret_url = "https://ops.example/alerts?token=${var.token}" }`)
	configuration = strings.ReplaceAll(configuration, "  cron ", "  callback_timeout_seconds = 2.7\n  cron ")
	w.configure(configuration)
	w.run(0, "init")

	w.run(0, "plan", "-out=saved")
	w.without("planted")
	if printed := w.apply(); !strings.Contains(printed, "6 added") || !strings.Contains(printed, "Every day at 02:00") {
		t.Error(printed)
	}
	w.same()
	w.without("planted")
	w.without("cGxhbnRlZC1") // the signing secret, in base64
	w.without("/ping/")

	w.configure(strings.ReplaceAll(configuration, "0 2 * * *", "0 3 * * *"))
	w.differs(`"0 2 * * *" -> "0 3 * * *"`)
	if printed := w.apply(); !strings.Contains(printed, "0 added, 1 changed, 0 destroyed") {
		t.Error(printed)
	}
	w.same()

	// By hand.
	_, err := client.Schedules.Update(t.Context(), tocsin.UpdateSchedule{
		Namespace: "shop", ScheduleID: "nightly-report", Jitter: tocsin.Some(time.Minute),
		Headers: tocsin.Some(map[string]string{"authorization": "Bearer another"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.differs(`"1m" -> "0s"`)
	w.apply()
	w.same()
	found, err := client.Schedules.Get(t.Context(), "shop", "nightly-report")
	if err != nil || found.Jitter != 0 || found.ManagedBy != "shop" {
		t.Fatal(found, err)
	}

	// Another secret, of which the configuration and the state have no trace.
	w.environment = append(w.environment, "TF_VAR_token=planted-secret-of-25-bytes")
	w.differs("A secret differs")
	w.apply()
	w.same()
	w.without("planted")

	for address, id := range map[string]string{
		"tocsin_namespace.shop": "shop", "tocsin_flow.customers": "shop/customer:", "tocsin_calendar.weekends": "shop/weekends",
		"tocsin_schedule.report": "shop/nightly-report", "tocsin_monitor.backup": "shop/nightly-backup",
		"tocsin_credential.alerts": "shop/alerts",
	} {
		w.run(0, "state", "rm", address)
		w.run(0, "import", address, id)
	}
	w.same()
	w.run(0, "destroy", "-auto-approve")
	if _, err := client.Namespaces.Get(t.Context(), "shop"); !errors.Is(err, tocsin.ErrNamespaceNotFound) {
		t.Error("the namespace is still there", err)
	}
	w.without("planted")
}
