// Command controlplane is the three Kubernetes control-plane programs in one binary, for tests on a real API server.
//
// It calls the public `app` commands of k8s.io/kubernetes and adds nothing of its own. One binary is linked once, shares what the
// three programs share, and is installed under three names: the name it is called by decides which program it is. Called by any other
// name, its first argument names the program.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func program(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	}
	return nil
}

func main() {
	name := filepath.Base(os.Args[0])
	command := program(name)
	if command == nil && len(os.Args) > 1 {
		name = os.Args[1]
		command = program(name)
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	if command == nil {
		fmt.Fprintf(os.Stderr, "controlplane: %q is not one of kube-apiserver, kube-controller-manager, kube-scheduler\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
