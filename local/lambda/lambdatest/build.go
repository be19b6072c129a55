package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Functions builds what `perigee lambda` runs: dir/NAME/bootstrap for each.
func Functions(ctx context.Context, dir string) error {
	for _, name := range []string{"api", "worker", "tick", "migrate"} {
		if err := Bootstrap(ctx, filepath.Join(dir, name, "bootstrap"), "perigee/functions/"+name); err != nil {
			return err
		}
	}
	return nil
}

// Bootstrap builds the program of a function, the main package pkg, at path.
func Bootstrap(ctx context.Context, path, pkg string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o", path, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
