// Package tocsintest is for your tests: a server whose clock you move, and signed callbacks without a server.
package tocsintest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/tocsin"
)

const (
	startTimeout = 120 * time.Second
	stopTimeout  = 30 * time.Second
)

var readyLine = regexp.MustCompile(`serves on (http://\S+)`)

// Server is `tocsin dev` on a free port, with an empty folder of its own. It starts in about a second: make one for each test
// function, and share it among its subtests.
type Server struct {
	// URL is where it answers.
	URL string

	folder  string
	process *exec.Cmd
	ended   chan struct{}
}

// NewServer starts a server with these flags, and stops it when the test ends. It fails the test if that is not possible.
//
// The program is the environment's TOCSIN_BIN, else tocsin on the PATH, else uvx tocsin.
func NewServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	server, err := Start(t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Start starts a server with its data in the folder, for TestMain and programs; Stop has to follow.
func Start(folder string, flags ...string) (*Server, error) {
	program, err := program()
	if err != nil {
		return nil, err
	}
	command := append(program, "dev", "--port", "0", "--data-dir", filepath.Join(folder, "data"))
	s := &Server{folder: folder, ended: make(chan struct{})}
	s.process = exec.Command(command[0], append(command[1:], flags...)...)
	log, err := os.Create(s.logName())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.process.Stderr = log
	output, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("tocsintest: %w", err)
	}
	ready := make(chan string, 1)
	go s.follow(output, ready)
	select {
	case s.URL = <-ready:
		return s, nil
	case <-s.ended:
	case <-time.After(startTimeout):
	}
	text, _ := os.ReadFile(s.logName()) // without a log there is nothing to add
	return nil, errors.Join(fmt.Errorf("tocsintest: %v did not start: %.4000s", s.process.Args, text), s.Stop())
}

// follow reads the output to its end, since a full pipe would stop the server.
func (s *Server) follow(output io.Reader, ready chan<- string) {
	defer close(s.ended)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case ready <- found[1]:
			default:
			}
		}
	}
	_ = s.process.Wait() // its exit code means nothing here: it was stopped, or its log has the reason
}

func (s *Server) logName() string { return filepath.Join(s.folder, "log") }

// Stop ends the server.
func (s *Server) Stop() error {
	select {
	case <-s.ended:
		return nil
	default:
	}
	if err := s.process.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopTimeout):
	}
	err := s.process.Process.Kill()
	<-s.ended
	return err
}

// Client is a client of this server.
func (s *Server) Client(options ...tocsin.Option) *tocsin.Client {
	return tocsin.NewClient(s.URL, options...)
}

// Now returns what the server's clock shows.
func (s *Server) Now(ctx context.Context) (time.Time, error) {
	answer, err := s.clock(ctx, "get", "{}")
	if err != nil {
		return time.Time{}, err
	}
	return rules.ParseInstant(answer.Now)
}

// Advance moves the clock from one due instant to the next until so much time has passed. It returns when everything that was
// due has been answered and stored, with the number of instants. The error: something came to no end.
func (s *Server) Advance(ctx context.Context, by time.Duration) (int, error) {
	text, err := rules.FormatDuration(by)
	if err != nil {
		return 0, fmt.Errorf("tocsintest: by: %w", err)
	}
	answer, err := s.clock(ctx, "advance", `{"by":"`+text+`"}`)
	return answer.Steps, err
}

type clockAnswer struct {
	Now     string `json:"now"`
	Steps   int    `json:"steps"`
	Message string `json:"message"`
}

func (s *Server) clock(ctx context.Context, operation, body string) (answer clockAnswer, err error) {
	address := s.URL + "/api/v1/dev/clock/" + operation
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer, err
	}
	request.Header.Set("content-type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("tocsintest: %s: %w", operation, err)
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("tocsintest: %s: %s", operation, answer.Message)
	}
	return answer, nil
}

func program() ([]string, error) {
	if named := os.Getenv("TOCSIN_BIN"); named != "" {
		return []string{named}, nil
	}
	if found, err := exec.LookPath("tocsin"); err == nil {
		return []string{found}, nil
	}
	if found, err := exec.LookPath("uvx"); err == nil {
		return []string{found, "tocsin"}, nil
	}
	return nil, errors.New("tocsintest: there is no program `tocsin`: install it, or name it in TOCSIN_BIN")
}
