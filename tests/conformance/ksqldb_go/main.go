// Walks through thmeitz/ksqldb-go: create, insert, stream in, pull, push, close. Prints what came of each step.
//
// usage: ksqldb-go URL NAME. It judges nothing; tests/conformance/test_ksqldb.py does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	ksqldb "github.com/thmeitz/ksqldb-go"
	"github.com/thmeitz/ksqldb-go/net"
)

const (
	columns = "id INT KEY, v STRING"
	made    = "CREATE STREAM %[1]s (" + columns + ") WITH (kafka_topic='%[1]s', format='JSON', partitions=1);"
	table   = "CREATE TABLE %[1]s_T AS SELECT id, COUNT(*) AS n FROM %[1]s GROUP BY id;"
)

var (
	client ksqldb.KsqldbClient
	http   net.Client
	steps  = map[string]interface{}{}
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func execute(statement string) []string {
	answers, err := client.Execute(ksqldb.ExecOptions{KSql: statement})
	check(err)
	states := []string{}
	for _, answer := range *answers {
		states = append(states, answer.CommandStatus.Status)
	}
	return states
}

// post sends a body with the client's own HTTP/2 transport, for the two endpoints that it has no call for.
func post(endpoint, body string) string {
	response, err := http.Post(http.GetUrl(endpoint), "application/vnd.ksqlapi.delimited.v1", strings.NewReader(body))
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	return fmt.Sprintf("%d %s", response.StatusCode, text)
}

func pull(query string) ksqldb.Payload {
	for {
		options := ksqldb.QueryOptions{Sql: query}
		_, rows, err := client.Pull(context.Background(), *options.EnablePullQueryTableScan(true))
		if err == nil {
			return rows
		}
		if !errors.Is(err, ksqldb.ErrNotFound) {
			check(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// push begins a query that reads from now on, inserts, takes the row and ends the query by its id.
func push(name string) {
	rows, headers := make(chan ksqldb.Row), make(chan ksqldb.Header)
	ended := make(chan error)
	go func() {
		ended <- client.Push(context.Background(), "SELECT * FROM "+name+" EMIT CHANGES;", rows, headers)
	}()
	header := <-headers
	execute(fmt.Sprintf("INSERT INTO %s (id, v) VALUES (9, 'pushed');", name))
	steps["pushed"] = <-rows
	id := reflect.ValueOf(header).FieldByName("queryId").String()
	steps["closed"] = post(ksqldb.CLOSE_QUERY_ENDPOINT, `{"queryId":"`+id+`"}`)
	check(<-ended)
}

func about(name string) {
	info, err := client.GetServerInfo()
	check(err)
	steps["info"] = info.ServerStatus
	health, err := client.GetServerStatus()
	check(err)
	steps["healthy"] = *health.IsHealthy && *health.Details.Kafka.IsHealthy && *health.Details.Metastore.IsHealthy
	cluster, err := client.GetClusterStatus()
	check(err)
	alive := 0
	for _, node := range cluster.ClusterStatus.Host {
		if node.HostAlive {
			alive++
		}
	}
	steps["alive"] = alive
	status, err := client.GetQueryStatus("/stream/" + name + "/create")
	check(err)
	steps["status"] = status.Status
	valid, err := client.ValidateProperty("ksql.streams.auto.offset.reset")
	check(err)
	steps["valid"] = *valid
	_, err = client.ValidateProperty("nothing.of.the.kind")
	steps["invalid"] = err != nil
}

func main() {
	options := net.Options{BaseUrl: os.Args[1], AllowHTTP: true}
	name := os.Args[2]
	var err error
	http, err = net.NewHTTPClient(options, nil)
	check(err)
	client, err = ksqldb.NewClient(&http)
	check(err)
	steps["created"] = execute(fmt.Sprintf(made+table, name))
	execute(fmt.Sprintf("INSERT INTO %s (id, v) VALUES (1, 'a');", name))
	steps["inserted"] = pull(fmt.Sprintf("SELECT id, n FROM %s_T WHERE id = 1;", name))
	sent := fmt.Sprintf("{\"target\": %q}\n{\"ID\": 2, \"V\": \"b\"}\n{\"ID\": 3, \"V\": \"c\"}\n", name)
	steps["streamed in"] = post(ksqldb.INSERTS_ENDPOINT, sent)
	steps["pulled"] = pull(fmt.Sprintf("SELECT id, n FROM %s_T WHERE id = 3;", name))
	push(name)
	about(name)
	client.EnableParseSQL(false)
	_, _, err = client.Pull(context.Background(), ksqldb.QueryOptions{Sql: "SELECT * FROM nowhere_at_all;"})
	var refusal ksqldb.ResponseError
	if errors.As(err, &refusal) {
		steps["refused"] = refusal.ErrCode
	}
	client.Close()
	text, err := json.Marshal(steps)
	check(err)
	fmt.Println(string(text))
}
