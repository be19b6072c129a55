package pgtest

import "net/url"

// Start starts a server for a program that is no test, such as a benchmark,
// with settings such as "shared_preload_libraries=pg_stat_statements" beside
// its own. base is its URL without a database. stop ends it and removes its files; it
// ends with the program, too, also when that is killed.
func Start(settings ...string) (base *url.URL, stop func(), err error) {
	p, base, err := startServer(settings...)
	if err != nil {
		return nil, nil, err
	}
	return base, p.stop, nil
}
