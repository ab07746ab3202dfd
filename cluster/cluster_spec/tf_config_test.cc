#include "cluster/cluster_spec/tf_config.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

constexpr char kJobs[] =
    R"("chief": ["c:1"], "ps": ["p:1"], "worker": ["w0:1", "w1:1"])";
constexpr char kWorker0[] = R"("task": {"type": "worker", "index": 0})";

std::string WithCluster(absl::string_view cluster) {
  return absl::StrCat("{\"cluster\": {", cluster, "}, ", kWorker0, "}");
}

std::string WithTask(absl::string_view task) {
  return absl::StrCat("{\"cluster\": {", kJobs, "}, \"task\": ", task, "}");
}

absl::StatusOr<TaskConfig> Parse(
    absl::string_view text, Role binary = Role::kWorker,
    StrategyKind strategy = StrategyKind::kParameterServer) {
  return ParseTfConfig(text, binary, strategy);
}

// An error that names TF_CONFIG first, then `words`, on one line.
auto IsFault(absl::string_view words) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(StartsWith("TF_CONFIG: "),
                        HasSubstr(std::string(words)), Not(HasSubstr("\n"))));
}

TEST(TfConfigTest, WithoutAClusterAWorkerIsAloneAndTheOthersFail) {
  for (const char* text :
       {"", "{}", R"({"cluster": null})", R"({"environment": "cloud"})",
        R"({"task": {"type": "worker", "index": "0"}})", R"({"task": {}})"}) {
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const TaskConfig task, Parse(text));
    EXPECT_FALSE(task.cluster.has_value());
    EXPECT_EQ(CheckConfigLine(task),
              R"({"task_type":"worker","task_index":0,"is_chief":true,)"
              R"("address":"","chief_address":"","num_workers":1,"num_ps":0,)"
              R"("num_evaluators":0})");
  }
  for (const Role role : {Role::kPs, Role::kChief, Role::kEvaluator}) {
    EXPECT_THAT(Parse("", role), IsFault(RoleName(role)));
    EXPECT_THAT(Parse("{}", role), IsFault(RoleName(role)));
  }
}

TEST(TfConfigTest, ATaskWithoutAClusterStillHasToBeThisOne) {
  EXPECT_THAT(Parse(R"({"task": {"type": "worker", "index": 3}})"),
              IsFault("task.index: 3"));
  EXPECT_THAT(Parse(R"({"task": {"type": "ps", "index": 0}})"),
              IsFault("\"ps\""));
}

TEST(TfConfigTest, WhatIsNotAJsonObjectIsAFaultWithItsPosition) {
  for (const char* text : {" ", "\n\n", "null", "[]", "\"{}\"", "1", "{}{}",
                           "{} ;", "{\"task\"", "\xff", "{\"a\": \"\xff\"}"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(Parse(text), IsFault("line"));
    EXPECT_THAT(Parse(text), IsFault("column"));
  }
  EXPECT_THAT(Parse(std::string("{}\0", 3)), IsFault("NUL"));
}

TEST(TfConfigTest, AKeyTwiceIsAFaultEvenInAKeyThatIsIgnored) {
  EXPECT_THAT(Parse(R"({"cluster": {}, "cluster": {}})"), IsFault("cluster"));
  EXPECT_THAT(Parse(R"({"x": [{"y": 1, "y": 2}]})"), IsFault("\"y\""));
  EXPECT_THAT(Parse(WithTask(R"({"type": "worker", "index": 0, "index": 1})")),
              IsFault("index"));
}

TEST(TfConfigTest, RpcLayerIsGrpcOrAbsent) {
  EXPECT_OK(Parse(R"({"rpc_layer": "grpc"})"));
  EXPECT_THAT(Parse(R"({"rpc_layer": "GRPC"})"), IsFault("\"GRPC\""));
  EXPECT_THAT(Parse(R"({"rpc_layer": ""})"), IsFault("rpc_layer: \"\""));
  EXPECT_THAT(Parse(R"({"rpc_layer": null})"), IsFault("rpc_layer: null"));
  EXPECT_THAT(Parse(R"({"rpc_layer": 1})"), IsFault("rpc_layer: 1"));
}

TEST(TfConfigTest, MasterIsTheChief) {
  constexpr char kText[] =
      R"({"cluster": {"master": ["m:1"], "ps": ["p:1"], "worker": ["w:1"]},
          "task": {"type": "master", "index": 0}})";
  ASSERT_OK_AND_ASSIGN(const TaskConfig task, Parse(kText, Role::kChief));
  EXPECT_EQ(task.role, Role::kChief);
  EXPECT_TRUE(task.is_chief);
  EXPECT_EQ(task.address, "m:1");
  EXPECT_THAT(Parse(kText), IsFault("the \"worker\" binary, but the task is a "
                                    "\"master\""));
  EXPECT_OK(Parse(WithCluster(absl::StrCat(kJobs, R"(, "master": null)"))));
}

TEST(TfConfigTest, JobsThatAreNoneAreFaults) {
  for (const char* job : {"gpu", "Worker", "", "workers", "w\\u0000"}) {
    SCOPED_TRACE(job);
    EXPECT_THAT(
        Parse(WithCluster(absl::StrCat(kJobs, ", \"", job, "\": null"))),
        IsFault(absl::StrCat("cluster: \"", job, "\"")));
  }
}

TEST(TfConfigTest, AJobIsAListAnObjectOrNull) {
  struct Case {
    std::string evaluator;
    std::string fault;
  };
  const Case cases[] = {
      {"\"e:1\"", "cluster.evaluator: \"e:1\""},
      {"1", "cluster.evaluator: 1"},
      {"false", "cluster.evaluator: false"},
      {"[null]", "cluster.evaluator[0]: null"},
      {"[[\"e:1\"]]", "cluster.evaluator[0]: [\"e:1\"]"},
      {"{\"0\": null}", "cluster.evaluator[\"0\"]: null"},
      {"{\"0\": 1}", "cluster.evaluator[\"0\"]: 1"},
      {"{\"-1\": \"e:1\"}", "cluster.evaluator: \"-1\""},
      {"{\"+1\": \"e:1\"}", "cluster.evaluator: \"+1\""},
      {"{\"\": \"e:1\"}", "cluster.evaluator: \"\""},
      {"{\" 1\": \"e:1\"}", "cluster.evaluator: \" 1\""},
      {"{\"1.0\": \"e:1\"}", "cluster.evaluator: \"1.0\""},
      {"{\"2147483648\": \"e:1\"}", "cluster.evaluator: \"2147483648\""},
      {"{\"1\": \"e:1\", \"01\": \"f:1\"}", "index 1 appears twice"},
      {"[\"e:1\", \"f:1\"]", "cluster.evaluator: 2 tasks"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.evaluator);
    EXPECT_THAT(Parse(WithCluster(
                    absl::StrCat(kJobs, ", \"evaluator\": ", c.evaluator))),
                IsFault(c.fault));
  }
  EXPECT_OK(Parse(WithCluster(absl::StrCat(kJobs, ", \"evaluator\": {}"))));
}

TEST(TfConfigTest, ASparseJobKeepsItsIndices) {
  ASSERT_OK_AND_ASSIGN(
      const TaskConfig task,
      Parse(R"({"cluster": {"chief": {"0": "c:1"}, "ps": {"0": "p:1"},
                            "worker": {"10": "x:1", "2": "y:1"}},
                "task": {"type": "worker", "index": 2}})"));
  EXPECT_EQ(task.address, "y:1");
  EXPECT_THAT(task.cluster->tasks(Role::kWorker),
              ElementsAre(Pair(2, "y:1"), Pair(10, "x:1")));
}

TEST(TfConfigTest, SparseClusterIsReadOnlyWhereClusterIsAbsent) {
  const std::string text =
      absl::StrCat(R"({"sparseCluster": {"gpu": 1}, "cluster": {)", kJobs,
                   "}, ", kWorker0, "}");
  EXPECT_OK(Parse(text));
  EXPECT_THAT(
      Parse(absl::StrCat(R"({"sparseCluster": {"gpu": 1}, )", kWorker0, "}")),
      IsFault("sparseCluster: \"gpu\""));
  EXPECT_OK(Parse(absl::StrCat(R"({"cluster": null, "sparseCluster": {)", kJobs,
                               "}, ", kWorker0, "}")));
}

TEST(TfConfigTest, ClusterIsAnObject) {
  for (const char* cluster : {"[]", "\"x\"", "0", "true"}) {
    EXPECT_THAT(
        Parse(absl::StrCat("{\"cluster\": ", cluster, ", ", kWorker0, "}")),
        IsFault(absl::StrCat("cluster: ", cluster)));
  }
}

TEST(TfConfigTest, TheSameAddressTwiceIsAFaultHoweverItIsSpelt) {
  EXPECT_THAT(Parse(WithCluster(R"("ps": ["h:1"], "worker": ["w:1", "H:01"])")),
              IsFault("cluster.worker[1]: \"H:01\" is the address of "
                      "cluster.ps[0] too"));
  EXPECT_THAT(
      Parse(WithCluster(R"("ps": ["[::1]:1"], "worker": ["[0:0::1]:1"])")),
      IsFault("[0:0::1]:1"));
  EXPECT_OK(Parse(WithCluster(R"("ps": ["h:1"], "worker": ["h:2"])")));
}

TEST(TfConfigTest, TaskTypeIsRequiredAndIsAJob) {
  EXPECT_THAT(Parse(absl::StrCat("{\"cluster\": {", kJobs, "}}")),
              IsFault("task.type"));
  EXPECT_THAT(Parse(WithTask("null")), IsFault("task.type"));
  EXPECT_THAT(Parse(WithTask("[]")), IsFault("task: []"));
  EXPECT_THAT(Parse(WithTask("\"worker\"")), IsFault("task: \"worker\""));
  for (const char* type : {"1", "\"\"", "\"Worker\"", "\"gpu\"", "[\"ps\"]"}) {
    EXPECT_THAT(
        Parse(WithTask(absl::StrCat(R"({"index": 0, "type": )", type, "}"))),
        IsFault(absl::StrCat("task.type: ", type)));
  }
}

TEST(TfConfigTest, TaskIndexIsAnIntegerOrItsDigits) {
  for (const char* index : {"1", "\"1\"", "\"01\""}) {
    ASSERT_OK_AND_ASSIGN(const TaskConfig task,
                         Parse(WithTask(absl::StrCat(
                             R"({"type": "worker", "index": )", index, "}"))));
    EXPECT_EQ(task.index, 1);
  }
  EXPECT_THAT(Parse(WithTask(R"({"type": "worker"})")),
              IsFault("task.index: missing"));
  EXPECT_THAT(Parse(WithTask(R"({"type": "worker", "index": null})")),
              IsFault("task.index: missing"));
  for (const char* index :
       {"-1", "1.0", "1.9", "true", "[0]", "{}", "\"\"", "\"-1\"", "\"+1\"",
        "\" 1\"", "\"1 \"", "\"1.0\"", "\"0x1\"", "\"one\"", "2147483648",
        "4294967296", "18446744073709551616", "\"18446744073709551616\""}) {
    SCOPED_TRACE(index);
    EXPECT_THAT(Parse(WithTask(absl::StrCat(R"({"type": "worker", "index": )",
                                            index, "}"))),
                IsFault("task.index: "));
  }
}

TEST(TfConfigTest, AnIndexThatIsNotInTheJobIsNamedWithThoseThatAre) {
  EXPECT_THAT(
      Parse(R"({"cluster": {"chief": ["c:1"], "ps": ["p:1"],
                 "worker": {"0": "a:1", "1": "b:1", "5": "d:1"}},
                "task": {"type": "worker", "index": 3}})"),
      IsFault("task.index: 3 is not in job \"worker\", which has 0-1, 5"));
}

TEST(TfConfigTest, OnlyAnEvaluatorMayBeAbsentFromTheCluster) {
  constexpr char kEvaluator[] = R"({"type": "evaluator", "index": 0})";
  ASSERT_OK_AND_ASSIGN(const TaskConfig task,
                       Parse(WithTask(kEvaluator), Role::kEvaluator));
  EXPECT_EQ(task.address, "");
  EXPECT_EQ(task.chief_address, "c:1");
  EXPECT_EQ(task.num_evaluators, 0);
  EXPECT_FALSE(task.is_chief);
  EXPECT_THAT(
      Parse(WithTask(R"({"type": "evaluator", "index": 1})"), Role::kEvaluator),
      IsFault("task.index: 1"));
  EXPECT_THAT(Parse(R"({"cluster": {"ps": ["p:1"], "worker": ["w:1"]},
                "task": {"type": "chief", "index": 0}})",
                    Role::kChief),
              IsFault("chief"));
}

TEST(TfConfigTest, HybridNeedsPsAndWorkers) {
  constexpr auto kHybrid = StrategyKind::kHybrid;
  ASSERT_OK_AND_ASSIGN(const TaskConfig worker,
                       Parse(WithCluster(R"("chief": ["c:1"], "ps": ["p:1"],
                                            "worker": ["a:1", "b:1"])"),
                             Role::kWorker, kHybrid));
  EXPECT_EQ(worker.num_workers, 2);
  EXPECT_EQ(worker.num_ps, 1);
  EXPECT_EQ(worker.strategy, kHybrid);
  EXPECT_FALSE(worker.is_chief);
  EXPECT_THAT(
      Parse(WithCluster(R"("worker": ["a:1"])"), Role::kWorker, kHybrid),
      IsFault("cluster.ps: no task, but the hybrid strategy needs at least 1"));
}

TEST(TfConfigTest, WorkerZerosPlaceOfAPsComesAfterTheLast) {
  EXPECT_EQ(StatePlace({}), 0);
  EXPECT_EQ(StatePlace({{0, "p:1"}, {3, "q:1"}}), 4);
}

TEST(TfConfigTest, MirroredHasNoPsAndItsChiefComputes) {
  constexpr auto kMirrored = StrategyKind::kMultiWorkerMirrored;
  EXPECT_THAT(Parse(WithCluster(kJobs), Role::kWorker, kMirrored),
              IsFault("cluster.ps: 1 tasks"));
  ASSERT_OK_AND_ASSIGN(const TaskConfig chief,
                       Parse(R"({"cluster": {"chief": ["c:1"], "ps": []},
                                 "task": {"type": "chief", "index": 0}})",
                             Role::kChief, kMirrored));
  EXPECT_EQ(chief.num_workers, 1);
  ASSERT_OK_AND_ASSIGN(const TaskConfig worker,
                       Parse(WithCluster(R"("worker": ["a:1", "b:1"])"),
                             Role::kWorker, kMirrored));
  EXPECT_EQ(worker.num_workers, 2);
  EXPECT_TRUE(worker.is_chief);
}

TEST(TfConfigTest, AChiefIsNamedAsItsClusterNamesIt) {
  const auto refused = [](absl::string_view chief, absl::string_view key) {
    const auto task = Parse(
        absl::StrCat(R"({")", key, R"(": {")", chief, R"(": ["c:1"], "worker":
                     ["w:1"]}, )",
                     kWorker0, "}"),
        Role::kWorker, StrategyKind::kMultiWorkerMirrored);
    EXPECT_OK(task);
    return CheckChiefHasPs(*task);
  };
  EXPECT_THAT(refused("chief", "cluster"), IsFault("cluster.chief: c:1"));
  EXPECT_THAT(refused("master", "cluster"), IsFault("cluster.master: c:1"));
  EXPECT_THAT(refused("chief", "sparseCluster"),
              IsFault("sparseCluster.chief: c:1"));
  EXPECT_THAT(Parse(WithCluster(R"("master": ["a:1", "b:1"], "ps": ["p:1"],
                                   "worker": ["w:1"])")),
              IsFault("cluster.master: 2 tasks"));
  ASSERT_OK_AND_ASSIGN(const TaskConfig with_ps, Parse(WithCluster(kJobs)));
  EXPECT_OK(CheckChiefHasPs(with_ps));
  EXPECT_OK(CheckChiefHasPs(TaskConfig()));
}

TEST(TfConfigTest, SomeoneDoesTheChiefsDuties) {
  EXPECT_THAT(Parse(R"({"cluster": {"ps": ["p:1"], "worker": {"1": "w:1"}},
                        "task": {"type": "worker", "index": 1}})"),
              IsFault("neither a chief nor a worker 0"));
}

// Whatever a byte is changed to: a task, or a fault on one line.
TEST(TfConfigTest, DamagedTextIsAFaultOrStillAConfiguration) {
  const std::string good = absl::StrCat(
      R"({"cluster": {"master": {"0": "[::1]:1"}, "ps": ["p:1"], )"
      R"("worker": ["w0:1"], "evaluator": null}, "x": [1.5, "\u00e9"], )",
      kWorker0, "}");
  ASSERT_OK(Parse(good));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_THAT(Parse(good.substr(0, i + (i == 0))), IsFault(""));
    for (int byte = 0; byte < 256; ++byte) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(byte);
      const auto config = Parse(damaged);
      if (config.ok()) continue;
      EXPECT_THAT(config, IsFault(""));
    }
  }
}

TEST(TfConfigTest, LongValuesAreCutInTheError) {
  const std::string digits(100000, '9');
  const auto config = Parse(WithTask(
      absl::StrCat(R"({"type": "worker", "index": ")", digits, "\"}")));
  EXPECT_THAT(config, IsFault("task.index: \"999"));
  EXPECT_LT(config.status().message().size(), 300);
}

}  // namespace
}  // namespace parasol
