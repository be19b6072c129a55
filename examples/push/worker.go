package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"perigee/sdk/go/client"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8900", "address to listen on")
	server := flag.String("server", "http://127.0.0.1:7474", "the Perigee server")
	flag.Parse()
	secret := os.Getenv("PERIGEE_SECRET_MAILER")
	if secret == "" {
		log.Fatal("set PERIGEE_SECRET_MAILER to what the server has there")
	}
	wk, err := newWorker(*server, secret)
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Addr: *listen, Handler: wk, ReadTimeout: 10 * time.Second}
	log.Printf("waiting for calls on http://%s/", *listen)
	log.Fatal(srv.ListenAndServe())
}

// worker does the task mail.welcome.
type worker struct {
	server *client.Client
	secret string
}

// newWorker makes a worker that reports to a server with the token of the
// environment, if there is one.
func newWorker(server, secret string) (*worker, error) {
	c, err := client.New(server, client.Options{Token: os.Getenv("PERIGEE_TOKEN")})
	return &worker{c, secret}, err
}

// maxBody is the server's limit of an input, and room for what is around it.
const maxBody = 2 << 20

// ServeHTTP does the work within the call: where nothing runs between calls,
// nothing would go on after the answer.
func (wk *worker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || !verify(wk.secret, r.Header, body, time.Now()) {
		http.Error(w, "the signature is missing, wrong or old", http.StatusUnauthorized)
		return
	}
	var task client.Task
	if err := json.Unmarshal(body, &task); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// The answer says that the call arrived, the report how the task went: any
	// error here has the server call again, as the step's retry policy says.
	if _, err := wk.server.Report(r.Context(), result(r.Context(), task), ""); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// result does a task and says what came out.
func result(_ context.Context, task client.Task) client.Result {
	r := client.Result{Token: task.Token}
	var input struct{ Name string }
	if err := errors.Join(known(task), json.Unmarshal(task.Input, &input)); err != nil {
		r.Error = &client.TaskError{Code: "CANNOT_GREET", Message: err.Error()}
		return r
	}
	output, err := json.Marshal(map[string]string{"text": "Welcome, " + input.Name + "!"})
	if err != nil {
		r.Error = &client.TaskError{Code: "CANNOT_GREET", Message: err.Error()}
	}
	r.Output = output
	return r
}

// known checks the contract: a pushed worker announces none.
func known(task client.Task) error {
	if task.TaskName == "mail.welcome" && task.ContractVersion == "1.0.0" {
		return nil
	}
	return fmt.Errorf("this worker does mail.welcome@1.0.0, not %s@%s", task.TaskName, task.ContractVersion)
}
