package traces_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perigee/engine"
	"perigee/infra/traces"
)

// hangs takes a call and never answers it.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// The clock stands still for as long as anything runs: had a call waited for the
// collector, it would have moved.
func TestExporter_ACollectorThatHangsTakesACallNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector{answer: hangs}
		x := exporter(t, traces.Options{Transport: &c})
		e, session := newEngine(t, engine.Options{Ended: x.Ended, Clock: func() int64 { return 1_000 }}, ship, order)
		x.Ended(ends(1))
		synctest.Wait()
		if c.count() != 1 {
			t.Fatalf("%d calls to the collector, want one that hangs", c.count())
		}
		before := time.Now()
		if _, err := e.Start(t.Context(), engine.StartRequest{Workflow: "order", ExecutionID: "o-1"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			report(t, e, engine.Result{Token: next(t, e, session).Token})
		}
		x.Ended(ends(10_000))
		if waited := time.Since(before); waited > 0 {
			t.Errorf("calls waited for %s", waited)
		}
	})
}

func TestExporter_DropsAndCountsWhatHasNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector{answer: hangs}
		x := exporter(t, traces.Options{Transport: &c})
		x.Ended(ends(1))
		synctest.Wait()
		x.Ended(ends(3_000))
		if got := x.Stats(); got != (traces.Stats{Dropped: 3_000 - 2_048}) {
			t.Errorf("%+v, want what is more than 2 048 dropped", got)
		}
		x.Close(t.Context())
		if got := x.Stats(); got != (traces.Stats{Dropped: 3_001}) {
			t.Errorf("%+v, want all dropped at the end", got)
		}
	})
}

func TestExporter_AsksACollectorThatIsAwayLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		away := true
		c := collector{}
		c.answer = func(*http.Request) (*http.Response, error) {
			if away {
				return answered(http.StatusServiceUnavailable, "secret"), nil
			}
			return answered(http.StatusOK, ""), nil
		}
		x := exporter(t, traces.Options{Transport: &c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		x.Ended(ends(2_000))
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := c.count(); n < 10 || n > 70 {
			t.Errorf("%d calls in an hour, want about one a minute at most", n)
		}
		away = false
		time.Sleep(time.Minute)
		synctest.Wait()
		x.Ended(ends(300))
		synctest.Wait()
		s := x.Stats()
		if s.Sent+s.Dropped != 2_300 || s.Sent < 300 {
			t.Errorf("%+v, want each of 2 300 counted once and the last 300 sent", s)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "the collector answered 503") || !strings.Contains(lines[1], "sent again") {
			t.Errorf("logged %q, want one line when it began and one when it ended", lines)
		}
	})
}

func TestExporter_LeavesACollectorAloneForAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector{}
		c.answer = func(*http.Request) (*http.Response, error) {
			answer := answered(http.StatusTooManyRequests, "")
			answer.Header.Set("Retry-After", "40")
			return answer, nil
		}
		x := exporter(t, traces.Options{Transport: &c})
		x.Ended(ends(1))
		time.Sleep(39 * time.Second)
		synctest.Wait()
		if n := c.count(); n != 1 {
			t.Errorf("%d calls in 39 s, want one", n)
		}
	})
}

func TestExporter_RepeatsNoCallThatCannotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector{}
		c.answer = func(*http.Request) (*http.Response, error) { return answered(http.StatusBadRequest, ""), nil }
		x := exporter(t, traces.Options{Transport: &c})
		x.Ended(ends(5))
		time.Sleep(time.Hour)
		synctest.Wait()
		if c.count() != 1 || x.Stats() != (traces.Stats{Dropped: 5}) {
			t.Errorf("%d calls, %+v", c.count(), x.Stats())
		}
	})
}

func TestExporter_CountsWhatACollectorRefused(t *testing.T) {
	for _, rejected := range []string{`"2"`, `2`} {
		c := collector{}
		c.answer = func(*http.Request) (*http.Response, error) {
			return answered(http.StatusOK, `{"partialSuccess":{"rejectedSpans":`+rejected+`,"errorMessage":"m"}}`), nil
		}
		x := exporter(t, traces.Options{Transport: &c})
		x.Ended(ends(5))
		x.Close(t.Context())
		if got := x.Stats(); got != (traces.Stats{Sent: 3, Dropped: 2}) {
			t.Errorf("%s: %+v", rejected, got)
		}
	}
}

func TestExporter_SendsInBatchesThatGatherAndAtOnceWithoutLinger(t *testing.T) {
	for linger, want := range map[time.Duration]int{0: 4, time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			var c collector
			x := exporter(t, traces.Options{Transport: &c, Linger: linger})
			for range 4 {
				x.Ended(ends(100))
				synctest.Wait()
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := c.count(); n != want || x.Stats().Sent != 400 {
				t.Errorf("linger %s: %d calls, want %d; %+v", linger, n, want, x.Stats())
			}
		})
	}
}

func TestExporter_CloseWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector{answer: hangs}
		x := exporter(t, traces.Options{Transport: &c})
		x.Ended(ends(1))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		x.Close(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A collector's key is in no log, whatever goes wrong, and goes nowhere else.
func TestExporter_ShowsItsHeadersToTheCollectorAlone(t *testing.T) {
	const secret = "s3cr3t"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with the key %q", r.Header.Get("Api-Key"))
	}))
	defer elsewhere.Close()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"refused": func(*http.Request) (*http.Response, error) { return answered(http.StatusUnauthorized, secret), nil },
		"broken":  func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") },
		"moved": func(*http.Request) (*http.Response, error) {
			moved := answered(http.StatusTemporaryRedirect, "")
			moved.Header.Set("Location", elsewhere.URL+"/"+secret)
			return moved, nil
		},
	} {
		var log bytes.Buffer
		c := collector{answer: answer}
		x := exporter(t, traces.Options{Transport: &c, Headers: map[string]string{"Api-Key": secret}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		x.Ended(ends(1))
		x.Close(t.Context())
		if got := c.calls[0].Header.Get("Api-Key"); got != secret {
			t.Errorf("%s: the collector got the key %q", name, got)
		}
		if c.count() != 1 || log.Len() == 0 || strings.Contains(log.String(), secret) {
			t.Errorf("%s: %d calls, logged %s", name, c.count(), log.String())
		}
	}
}
