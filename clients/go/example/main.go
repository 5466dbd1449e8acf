// The example submits a run of two tasks, follows it, answers its question and prints the result.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	crewd "crewd.dev/go"
	crewdv1 "crewd.dev/go/crewd/v1"
)

// asker speaks the jsonl protocol: it reads its task, asks, reads the answer and hands in a result.
const asker = `read -r task
echo '{"type": "ask", "id": "1", "question": "Ship it?", "options": ["yes", "no"]}'
read -r answer
echo '{"type": "result", "outcome": "completed", "text": "it was decided"}'`

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatalf("%v %s", err, crewd.Reason(err))
	}
}

func run(ctx context.Context) error {
	client, err := crewd.Connect(ctx, crewd.Options{Name: "crewd-example-go/1"})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // a run does not end with its client
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	created, err := client.Runs.CreateRun(ctx, &crewdv1.CreateRunRequest{
		Spec: &crewdv1.RunSpec{
			Goal:      "decide and tell",
			Workspace: &crewdv1.WorkspaceSpec{Cwd: cwd},
			Tasks: []*crewdv1.TaskSpec{
				{Id: "decide", Adapter: "jsonl", Command: []string{"sh", "-c", asker}},
				{Id: "tell", Command: []string{"echo", "done"}, DependsOn: []string{"decide"}},
			},
		},
		Env: &crewdv1.ClientEnv{Path: os.Getenv("PATH")},
	})
	if err != nil {
		return err
	}
	id := created.Run.Id
	for event, err := range client.WatchRun(ctx, &crewdv1.WatchRunRequest{RunId: id, StopWhenFinished: true}) {
		if err != nil {
			return err
		}
		fmt.Println(event.Kind, event.TaskId)
		ask := event.GetAskOpened().GetAsk()
		if ask == nil {
			continue
		}
		fmt.Println(" ", ask.Question, "yes")
		_, err := client.Asks.AnswerAsk(ctx, &crewdv1.AnswerAskRequest{AskId: ask.Id, OptionIds: []string{"yes"}})
		if err != nil && crewd.Reason(err) != "ASK_SETTLED" { // someone else may be faster
			return err
		}
	}
	request := &crewdv1.ListTasksRequest{RunId: id}
	for task, err := range crewd.Pages(ctx, client.Runs.ListTasks, request, (*crewdv1.ListTasksResponse).GetTasks) {
		if err != nil {
			return err
		}
		fmt.Println(task.Id, task.Status, task.GetResult().GetText())
	}
	return nil
}
