package database

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The server's words for a password that it does not take.
const (
	codeInvalidPassword      = "28P01"
	codeInvalidAuthorization = "28000" // of RDS, for a token that has expired
)

// secret is a password in Secrets Manager. It is read once and again when the
// server refuses it: then it has been rotated.
type secret struct {
	id   string
	read func(ctx context.Context, id string) (string, error)

	mu    sync.Mutex
	known bool
	login login
}

// login is what a secret of the kind that RDS makes holds, and we use.
type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

func (s *secret) prepare(ctx context.Context, c *pgx.ConnConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		text, err := s.read(ctx, s.id)
		if err != nil {
			return fmt.Errorf("read the database's password from secret %s: %w", s.id, err)
		}
		if s.login, err = parseLogin(text); err != nil {
			return fmt.Errorf("secret %s: %w", s.id, err)
		}
		s.known = true
	}
	if s.login.Username != "" {
		c.User = s.login.Username
	}
	c.Password = s.login.Password
	onRefusal(c, s.forget)
	return nil
}

func (s *secret) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// parseLogin takes {"username": …, "password": …} or the bare password. The
// error holds nothing of the secret.
func parseLogin(text string) (login, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if text == "" {
			return login{}, fmt.Errorf("expected a password, or JSON with username and password; it is empty")
		}
		return login{Password: text}, nil
	}
	var l login
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Password == "" {
		return login{}, fmt.Errorf("expected JSON with the texts username and password")
	}
	return l, nil
}

// tokenLife is how long a token is used for new connections: RDS takes it for
// 15 minutes, and more connections a second where it is the same one.
const tokenLife = 10 * time.Minute

// tokens are passwords that IAM makes, signed on this machine.
type tokens struct {
	sign func(ctx context.Context, endpoint, user string) (string, error)
	now  func() time.Time // nil: time.Now

	mu    sync.Mutex
	token string
	until time.Time
}

func (t *tokens) prepare(ctx context.Context, c *pgx.ConnConfig) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now
	if t.now != nil {
		now = t.now
	}
	// The wall clock: the other one may stand still while a sandbox is frozen.
	if at := now().Round(0); t.token == "" || !at.Before(t.until) {
		token, err := t.sign(ctx, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.User)
		if err != nil {
			return fmt.Errorf("make a token for the database: %w", err)
		}
		t.token, t.until = token, at.Add(tokenLife)
	}
	c.Password = t.token
	onRefusal(c, t.forget)
	return nil
}

func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = ""
}

// onRefusal calls forget when the server does not take the password, so that
// the next try asks for a new one.
func onRefusal(c *pgx.ConnConfig, forget func()) {
	before := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if e.Code == codeInvalidPassword || e.Code == codeInvalidAuthorization {
			forget()
		}
		return before == nil || before(conn, e)
	}
}
