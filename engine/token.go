package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf8"
)

// taskToken is what a worker holds an attempt by: base64url(execution, unit,
// worker) "." secret. The parts in front let a result find its execution; the
// secret, 128 random bits, is what counts, and history keeps its hash only.
type taskToken struct {
	execution, unit, worker string
	secret                  string
}

const tokenSeparator = "\x00"

func (t taskToken) String() string {
	place := strings.Join([]string{t.execution, t.unit, t.worker}, tokenSeparator)
	return base64.RawURLEncoding.EncodeToString([]byte(place)) + "." + t.secret
}

// hash is what history knows the token by.
func (t taskToken) hash() string { return hashSecret(t.secret) }

// maxTokenBytes bounds what is decoded of a token: a longer one is none of ours.
const maxTokenBytes = 4096

// parseToken takes a token apart; false for text that is none.
func parseToken(text string) (taskToken, bool) {
	place, secret, ok := strings.Cut(text, ".")
	if !ok || secret == "" || len(text) > maxTokenBytes {
		return taskToken{}, false
	}
	b, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		return taskToken{}, false
	}
	parts := strings.Split(string(b), tokenSeparator)
	// What is no text must not come to a database that refuses it.
	if len(parts) != 3 || !isExecutionID(parts[0]) || parts[1] == "" || !utf8.Valid(b) {
		return taskToken{}, false
	}
	return taskToken{parts[0], parts[1], parts[2], secret}, true
}

// TokenWorker is the worker that a task token says it was issued to. History
// decides whether that is true.
func (e *Engine) TokenWorker(token string) (workerID string, ok bool) {
	t, ok := parseToken(token)
	return t.worker, ok
}

// hashSecret is the hex SHA-256 by which secrets are stored and compared.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret makes 128 random bits as text.
func (e *Engine) newSecret() string {
	b := make([]byte, 16)
	if _, err := io.ReadFull(e.opts.Random, b); err != nil {
		panic("engine: no randomness for secrets: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (e *Engine) newSecrets(n int) []string {
	secrets := make([]string, n)
	for i := range secrets {
		secrets[i] = e.newSecret()
	}
	return secrets
}
