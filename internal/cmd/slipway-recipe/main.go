// Command slipway-recipe determines how a commit, or a tarball that it unpacks, becomes an
// image. The script that CodeBuild runs uses it. It reads the framework configuration file of
// a tree, writes the Dockerfile and the files that the Dockerfile needs into a directory, and
// prints the rest as JSON. It runs no code of the repository. An error in the repository is
// part of its output; any other error ends it with an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/archive"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// answer is the printed output.
type answer struct {
	// Failure is the reason why there is no recipe.
	Failure *build.Failure `json:"failure,omitempty"`
	// Build is the argument list of the command that must be run in Dir of the tree before the
	// image is built, Text is its description; null if there is no command.
	Build  []string `json:"build"`
	Text   string   `json:"text"`
	Dir    string   `json:"dir"`
	Graphs []string `json:"graphs"`
	// Descriptions are the descriptions of graphs.
	Descriptions map[string]string `json:"descriptions"`
	// Auth and Settings are those of build.Artifact.
	Auth     string         `json:"auth"`
	Settings build.Settings `json:"settings"`
	// Commit is the commit's id, or the digest of the tarball.
	Commit string `json:"commit"`
	// Record describes how the image is made; the image itself is not in it.
	Record build.Record `json:"record"`
	// Remarks go to the log.
	Remarks []string `json:"remarks"`
	// Steps are the steps of the Dockerfile.
	Steps []dockerfile.Step `json:"steps"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-recipe:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	var source dockerfile.Source
	var bases dockerfile.Bases
	var tree, path, to, committed, tarball string
	var paths bool
	flags := flag.NewFlagSet("slipway-recipe", flag.ContinueOnError)
	flags.BoolVar(&paths, "paths", false, "only print what is wrong with the paths of a commit, which come as input, each with a zero byte at its end")
	flags.StringVar(&tree, "tree", "", "directory with the commit")
	flags.StringVar(&tarball, "tarball", "", "a tarball that is unpacked into the directory, and takes the place of a commit")
	flags.StringVar(&path, "config", "", "the framework configuration file, from the directory")
	flags.StringVar(&to, "to", "", "directory to write to")
	flags.StringVar(&source.URL, "repository", "", "the repository's address")
	flags.StringVar(&source.Commit, "commit", "", "the commit's id")
	flags.StringVar(&committed, "committed", "", "when the commit was made, as RFC 3339")
	flags.StringVar(&source.Workspace, "workspace", "", "the workspace's id")
	flags.StringVar(&source.Deployment, "deployment", "", "the deployment's id")
	flags.StringVar(&source.Revision, "revision", "", "the revision's id")
	flags.StringVar(&source.InstallCommand, "install-command", "", "what installs a JavaScript repository's packages")
	flags.StringVar(&source.BuildCommand, "build-command", "", "what builds a JavaScript repository")
	flags.StringVar(&bases.Registry, "registry", "", "where the images of the languages are")
	flags.StringVar(&bases.Other, "other-image", "", "the image for agents in other languages")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if paths {
		return checkPaths(stdin, stdout)
	}
	var err error
	if source.Committed, err = time.Parse(time.RFC3339, committed); err != nil {
		return err
	}
	said, err := write(source, bases, tree, tarball, path, to)
	if failure, ok := errors.AsType[*build.Failure](err); ok {
		said, err = answer{Failure: failure}, nil
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(said)
}

func write(source dockerfile.Source, bases dockerfile.Bases, tree, tarball, path, to string) (_ answer, err error) {
	if source.Tree, err = os.OpenRoot(tree); err != nil {
		return answer{}, err
	}
	defer func() { err = errors.Join(err, source.Tree.Close()) }()
	if tarball != "" {
		if source.Commit, err = unpack(tarball, source.Tree); err != nil {
			return answer{}, err
		}
	}
	config, err := framework.Read(tree, path, framework.OfferLines)
	if err != nil {
		return answer{}, err
	}
	source.Config = config
	recipe, err := dockerfile.Make(source, bases)
	if err != nil {
		return answer{}, err
	}
	recipe.Files["Dockerfile"] = recipe.Dockerfile
	for name, text := range recipe.Files {
		file := filepath.Join(to, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return answer{}, err
		}
	}
	said := answer{
		Commit: source.Commit, Dir: config.Dir, Graphs: config.Graphs, Descriptions: config.Descriptions, Auth: config.Auth, Settings: config.Settings,
		Record: recipe.Record, Remarks: config.RemarksOn(source.InstallCommand, source.BuildCommand), Steps: recipe.Steps,
	}
	if config.Language == "" {
		said.Build, said.Text = config.Build, config.BuildText
	}
	return said, nil
}

// checkPaths reads no more paths than it needs: a commit may have any number.
func checkPaths(stdin io.Reader, stdout io.Writer) error {
	paths := build.CheckPaths(func() {}, build.TroubleWithPath)
	for paths.Trouble == "" {
		if _, err := io.CopyN(paths, stdin, 1<<16); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	_, err := io.WriteString(stdout, paths.Trouble)
	return err
}

func unpack(tarball string, tree *os.Root) (digest string, err error) {
	file, err := os.Open(tarball)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return archive.Unpack(context.Background(), file, tree, archive.Default)
}
