// Command kadm walks through franz-go's admin client against one broker: topics, settings, offsets, records, places.
//
// usage: kadm HOST:PORT PREFIX. It prints one JSON object: the name of each step and what came back. It judges
// nothing; tests/conformance/test_kadm.py does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type walk struct {
	ctx    context.Context
	client *kgo.Client
	admin  *kadm.Client
	prefix string
	steps  map[string]any
}

func (w *walk) note(step string, value any, err error) {
	if err != nil {
		value = "error: " + err.Error()
	}
	w.steps[step] = value
}

// until notes a value when it is as it should be, or the last one after a while: a broker of Apache Kafka may learn of
// a change a moment after the controller answered.
func (w *walk) until(step string, look func() (any, bool)) {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		value, done := look()
		w.note(step, value, nil)
		if done || time.Now().After(deadline) {
			return
		}
	}
}

func (w *walk) topic(name string) string { return w.prefix + "-" + name }

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kadm HOST:PORT PREFIX")
		os.Exit(2)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	w := &walk{ctx, client, kadm.NewClient(client), os.Args[2], map[string]any{}}
	w.topics()
	w.configs()
	w.records()
	w.places()
	w.delete()
	_ = json.NewEncoder(os.Stdout).Encode(w.steps)
}

func (w *walk) topics() {
	configs := map[string]*string{"retention.ms": kadm.StringPtr("60000"), "cleanup.policy": kadm.StringPtr("compact")}
	created, err := w.admin.CreateTopic(w.ctx, 3, 1, configs, w.topic("a"))
	w.note("create", map[string]any{
		"partitions": created.NumPartitions, "replicas": created.ReplicationFactor,
		"has_id": created.ID != kadm.TopicID{}, "retention": value(created.Configs["retention.ms"].Value),
	}, err)
	_, err = w.admin.CreateTopic(w.ctx, 1, 1, nil, w.topic("a"))
	w.note("create again", nil, err)
	_, err = w.admin.CreateTopic(w.ctx, 1, 1, nil, "bad/name")
	w.note("create bad name", nil, err)
	_, err = w.admin.CreateTopic(w.ctx, 1, 2, nil, w.topic("b"))
	w.note("create too many replicas", nil, err)
	_, err = w.admin.CreateTopic(w.ctx, 1, 1, map[string]*string{"retention.ms": kadm.StringPtr("soon")}, w.topic("b"))
	w.note("create bad config", nil, err)
	dry, err := w.admin.ValidateCreateTopics(w.ctx, 2, 1, nil, w.topic("b"))
	w.note("validate create", dry[w.topic("b")].Err == nil, err)
	created, err = w.admin.CreateTopic(w.ctx, -1, -1, nil, w.topic("defaults"))
	w.note("create by defaults", created.ReplicationFactor, err)
	more, err := w.admin.CreatePartitions(w.ctx, 2, w.topic("a"))
	w.note("create partitions", more[w.topic("a")].Err == nil, err)
	fewer, err := w.admin.UpdatePartitions(w.ctx, 1, w.topic("a"))
	w.note("fewer partitions", fmt.Sprint(fewer[w.topic("a")].Err), err)
	w.until("list", func() (any, bool) {
		listed, err := w.admin.ListTopics(w.ctx, w.topic("a"), w.topic("b"))
		detail := listed[w.topic("a")]
		if err != nil || len(detail.Partitions) == 0 {
			return fmt.Sprint(err), false
		}
		return map[string]any{
			"partitions": detail.Partitions.Numbers(), "leader_epoch": detail.Partitions[0].LeaderEpoch,
			"isr": len(detail.Partitions[0].ISR), "internal": detail.IsInternal, "absent": fmt.Sprint(listed[w.topic("b")].Err),
		}, len(detail.Partitions) == 5
	})
}

func (w *walk) configs() {
	name := w.topic("a")
	w.note("describe configs", w.described(name), nil)
	set := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("2000")}
	add := kadm.AlterConfig{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: kadm.StringPtr("delete")}
	drop := kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "retention.ms"}
	answer, err := w.admin.AlterTopicConfigs(w.ctx, []kadm.AlterConfig{set, add, drop}, name)
	w.note("alter configs", fmt.Sprint(answer[0].Err), err)
	w.until("altered configs", func() (any, bool) {
		now := w.described(name)
		return now, now["max.message.bytes"] == "2000"
	})
	bad := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("-5")}
	answer, err = w.admin.AlterTopicConfigs(w.ctx, []kadm.AlterConfig{bad}, name)
	w.note("alter bad config", fmt.Sprint(answer[0].Err), err)
	unknown := kadm.AlterConfig{Op: kadm.SetConfig, Name: "no.such.setting", Value: kadm.StringPtr("1")}
	answer, err = w.admin.AlterTopicConfigs(w.ctx, []kadm.AlterConfig{unknown}, name)
	w.note("alter unknown config", fmt.Sprint(answer[0].Err), err)
	state := kadm.AlterConfig{Name: "segment.bytes", Value: kadm.StringPtr("2097152")}
	answer, err = w.admin.AlterTopicConfigsState(w.ctx, []kadm.AlterConfig{state}, name)
	w.note("alter whole state", fmt.Sprint(answer[0].Err), err)
	w.until("whole state", func() (any, bool) {
		now := w.described(name)
		return now, now["segment.bytes"] == "2097152"
	})
	brokers, err := w.admin.ListBrokers(w.ctx)
	w.note("brokers", len(brokers), err)
	resources, err := w.admin.DescribeBrokerConfigs(w.ctx, brokers[0].NodeID)
	w.note("broker configs", len(resources) == 1 && len(resources[0].Configs) > 50, err)
}

// described gives the settings of a topic that differ from the default, with where they come from.
func (w *walk) described(topic string) map[string]string {
	resources, err := w.admin.DescribeTopicConfigs(w.ctx, topic)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	changed := map[string]string{}
	for _, config := range resources[0].Configs {
		if config.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
			changed[config.Key] = value(config.Value)
		}
	}
	return changed
}

func (w *walk) records() {
	name := w.topic("defaults")
	for i := range 10 {
		record := &kgo.Record{Topic: name, Partition: 0, Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(int64(1000 * (i + 1)))}
		w.note("produce", "ok", w.client.ProduceSync(w.ctx, record).FirstErr())
	}
	offset := func(listed kadm.ListedOffsets, err error) any {
		found, _ := listed.Lookup(name, 0)
		if err == nil {
			err = found.Err
		}
		if err != nil {
			return "error: " + err.Error()
		}
		return found.Offset
	}
	w.note("start offset", offset(w.admin.ListStartOffsets(w.ctx, name)), nil)
	w.note("end offset", offset(w.admin.ListEndOffsets(w.ctx, name)), nil)
	w.note("committed offset", offset(w.admin.ListCommittedOffsets(w.ctx, name)), nil)
	w.note("offset after 4500 ms", offset(w.admin.ListOffsetsAfterMilli(w.ctx, 4500, name)), nil)
	w.note("max timestamp offset", offset(w.admin.ListMaxTimestampOffsets(w.ctx, name)), nil)
	before := kadm.Offsets{}
	before.Add(kadm.Offset{Topic: name, Partition: 0, At: 4})
	deleted, err := w.admin.DeleteRecords(w.ctx, before)
	w.note("delete records", deleted[name][0].LowWatermark, err)
	w.note("start offset after", offset(w.admin.ListStartOffsets(w.ctx, name)), nil)
	epochs := kadm.OffsetForLeaderEpochRequest{}
	epochs.Add(name, 0, 0)
	ends, err := w.admin.OffsetForLeaderEpoch(w.ctx, epochs)
	w.note("end offset of epoch", ends[name][0].EndOffset, err)
}

func (w *walk) places() {
	name := w.topic("defaults")
	set := kadm.TopicsSet{}
	set.Add(name, 0)
	dirs, err := w.admin.DescribeAllLogDirs(w.ctx, set)
	var size int64
	dirs.Each(func(dir kadm.DescribedLogDir) { size += dir.Size() })
	w.note("log dirs", size > 0, err)
	moves, err := w.admin.ListPartitionReassignments(w.ctx, set)
	w.note("reassignments", len(moves), err)
	elected, err := w.admin.ElectLeaders(w.ctx, kadm.ElectPreferredReplica, set)
	w.note("elect leaders", fmt.Sprint(elected[name][0].Err), err)
	versions, err := w.admin.ApiVersions(w.ctx)
	for _, v := range versions {
		w.note("version guess", v.VersionGuess(), err)
	}
	quotas, err := w.admin.DescribeClientQuotas(w.ctx, false, nil)
	w.note("quotas", len(quotas), err)
}

func (w *walk) delete() {
	gone, err := w.admin.DeleteTopics(w.ctx, w.topic("a"), w.topic("b"))
	w.note("delete", fmt.Sprint(gone[w.topic("a")].Err), err)
	w.note("delete absent", fmt.Sprint(gone[w.topic("b")].Err), nil)
	w.until("after delete", func() (any, bool) {
		listed, err := w.admin.ListTopics(w.ctx, w.topic("a"))
		gone := listed[w.topic("a")].Err
		return fmt.Sprint(gone, err), gone != nil
	})
}

func value(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
