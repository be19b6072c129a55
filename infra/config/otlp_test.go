package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/infra/config"
)

func TestLoad_ReadsWhereTracesGo(t *testing.T) {
	got, err := config.Load(nil, from(map[string]string{
		"PERIGEE_OTLP_ENDPOINT": "https://collector.example/otlp", "PERIGEE_OTLP_HEADERS": "Authorization=Basic%20YTpi==, api-key = a%2Cb ,",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Headers{"Authorization": "Basic YTpi==", "api-key": "a,b"}
	if diff := cmp.Diff(want, got.OTLPHeaders); diff != "" || got.OTLPEndpoint != "https://collector.example/otlp" {
		t.Errorf("endpoint %q, headers (-want +got):\n%s", got.OTLPEndpoint, diff)
	}
}

func TestLoad_FaultsOfTheCollectorsSettingsShowNoSecret(t *testing.T) {
	for setting, texts := range map[string][]string{
		"PERIGEE_OTLP_ENDPOINT": {"collector:4318/s3cr3t", "https://user:s3cr3t@collector", "https://collector?key=s3cr3t", "https://collector#s3cr3t", "ftp://collector/s3cr3t", "http://%zz/s3cr3t"},
		"PERIGEE_OTLP_HEADERS":  {"s3cr3t", "api-key=s3cr3t%zz", "api key=s3cr3t", "=s3cr3t", "api-key=s3cr3t%0d%0aHost: x"},
	} {
		for _, text := range texts {
			_, err := config.Load(nil, from(map[string]string{setting: text}))
			if err == nil || !strings.HasPrefix(err.Error(), setting+": expected ") || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%s=%s: %v", setting, text, err)
			}
		}
	}
}

func TestHeaders_ShowTheirNamesAlone(t *testing.T) {
	s, err := config.Load(nil, from(map[string]string{"PERIGEE_OTLP_HEADERS": "b=s3cr3t,a=s3cr3t"}))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("settings", "headers", s.OTLPHeaders, "all", s.OTLPHeaders)
	}
	text, err := json.Marshal(s.OTLPHeaders)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s.OTLPHeaders), string(text), log.String()} {
		if strings.Contains(shown, "s3cr3t") || !strings.Contains(shown, "[a b]") {
			t.Errorf("shown as %s", shown)
		}
	}
}
