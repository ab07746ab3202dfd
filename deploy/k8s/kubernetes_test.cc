#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/k8s/testing/rendered_manifests.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

// What `kubectl apply -k deploy/k8s/base` would send, and the script that its
// pods run. kubectl renders without a cluster.
namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kScript[] = "deploy/k8s/run_task";
constexpr absl::Duration kLimit = absl::Seconds(60);

CompletedProcess Complete(const SubprocessOptions& options) {
  absl::StatusOr<CompletedProcess> completed = RunSubprocess(options, kLimit);
  EXPECT_OK(completed);
  return completed.ok() ? *std::move(completed) : CompletedProcess();
}

class KustomizeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasKubectl()) {
      GTEST_SKIP() << "kubectl is not here, so nothing renders the manifests";
    }
    Render("base");
  }

  void Render(const std::string& overlay) {
    objects_.clear();
    const absl::StatusOr<std::string> rendered = RenderedManifests(overlay);
    ASSERT_OK(rendered);
    const std::vector<std::string> objects =
        absl::StrSplit(*rendered, "\n---\n");
    for (const std::string& object : objects) {
      objects_[absl::StrCat(Field(object, "kind: "), "/",
                            Field(object, "  name: "))] = object;
    }
  }

  // The rest of the first line that begins so.
  static std::string Field(const std::string& object,
                           const std::string& prefix) {
    for (const absl::string_view line : absl::StrSplit(object, '\n')) {
      if (absl::StartsWith(line, prefix)) {
        return std::string(line.substr(prefix.size()));
      }
    }
    return "";
  }

  // "StatefulSet/parasol-ps" to its YAML.
  std::map<std::string, std::string> objects_;
};

TEST_F(KustomizeTest, EveryRoleIsThereWithItsService) {
  for (const char* name :
       {"StatefulSet/parasol-chief", "StatefulSet/parasol-ps",
        "StatefulSet/parasol-worker", "Job/parasol-evaluator",
        "PersistentVolumeClaim/parasol-checkpoints",
        "PersistentVolumeClaim/parasol-data"}) {
    EXPECT_TRUE(objects_.contains(name)) << name;
  }
  for (const char* name : {"chief", "ps", "worker"}) {
    EXPECT_THAT(objects_[absl::StrCat("Service/parasol-", name)],
                AllOf(HasSubstr("clusterIP: None"),
                      HasSubstr("publishNotReadyAddresses: true")));
  }
  EXPECT_THAT(objects_["PersistentVolumeClaim/parasol-checkpoints"],
              HasSubstr("- ReadWriteMany"));
}

TEST_F(KustomizeTest, PodsAreProbedLimitedAndUnprivileged) {
  for (const char* name : {"chief", "ps", "worker"}) {
    EXPECT_THAT(objects_[absl::StrCat("StatefulSet/parasol-", name)],
                AllOf(HasSubstr("startupProbe:"), HasSubstr("livenessProbe:"),
                      HasSubstr("readinessProbe:\n          periodSeconds: 5\n"
                                "          tcpSocket:"),
                      HasSubstr("podManagementPolicy: Parallel"),
                      HasSubstr("terminationGracePeriodSeconds:")));
  }
  for (const char* name :
       {"StatefulSet/parasol-chief", "StatefulSet/parasol-ps",
        "StatefulSet/parasol-worker", "Job/parasol-evaluator"}) {
    EXPECT_THAT(objects_[name],
                AllOf(HasSubstr("runAsNonRoot: true"),
                      HasSubstr("readOnlyRootFilesystem: true"),
                      HasSubstr("allowPrivilegeEscalation: false"),
                      HasSubstr("prometheus.io/scrape: \"true\""),
                      HasSubstr("limits:\n            memory:"),
                      HasSubstr("image: parasol:0.1.0")))
        << name;
  }
}

TEST_F(KustomizeTest, ReplicasAreAsManyAsTfConfigSays) {
  const auto config = objects_.lower_bound("ConfigMap/parasol-cluster");
  ASSERT_NE(config, objects_.end());
  const std::string num_ps = Field(config->second, "  NUM_PS: ");
  const std::string num_workers = Field(config->second, "  NUM_WORKERS: ");
  EXPECT_EQ(absl::StrCat(
                "\"", Field(objects_["StatefulSet/parasol-ps"], "  replicas: "),
                "\""),
            num_ps);
  EXPECT_EQ(
      absl::StrCat(
          "\"", Field(objects_["StatefulSet/parasol-worker"], "  replicas: "),
          "\""),
      num_workers);
}

TEST_F(KustomizeTest, WorkersWithoutPsHaveTheJobAndTheCheckpoints) {
  Render("multi_worker_mirrored");
  for (const char* name : {"StatefulSet/parasol-chief", "Service/parasol-chief",
                           "StatefulSet/parasol-ps", "Service/parasol-ps"}) {
    EXPECT_FALSE(objects_.contains(name)) << name;
  }
  const std::string worker = objects_["StatefulSet/parasol-worker"];
  EXPECT_THAT(worker,
              AllOf(HasSubstr("- --job=/etc/parasol/job/job.textproto"),
                    HasSubstr("- --checkpoint_dir=/checkpoints"),
                    HasSubstr("runAsNonRoot: true"), HasSubstr("replicas: 2")));
  const auto config = objects_.lower_bound("ConfigMap/parasol-cluster");
  ASSERT_NE(config, objects_.end());
  EXPECT_EQ(Field(config->second, "  NUM_PS: "), "\"0\"");
  EXPECT_EQ(Field(config->second, "  NUM_WORKERS: "), "\"2\"");
}

TEST_F(KustomizeTest, WorkersBesidePsAreToldSoAndSeeTheCheckpoints) {
  Render("hybrid");
  for (const char* name : {"chief", "worker"}) {
    EXPECT_THAT(objects_[absl::StrCat("StatefulSet/parasol-", name)],
                HasSubstr("- --strategy=hybrid"));
  }
  EXPECT_THAT(objects_["StatefulSet/parasol-ps"], Not(HasSubstr("hybrid")));
  EXPECT_THAT(objects_["StatefulSet/parasol-worker"],
              AllOf(HasSubstr("claimName: parasol-checkpoints\n"
                              "          readOnly: false")));
}

SubprocessOptions RunTask(const std::string& role, const std::string& pod,
                          const std::string& command) {
  return {.argv = {"/bin/bash", kScript, role, "/bin/sh", "-c", command},
          .environment = {
              {"POD_NAME", pod}, {"NUM_PS", "2"}, {"NUM_WORKERS", "1"}}};
}

TEST(RunTaskTest, TfConfigNamesThePodsOfTheStatefulSets) {
  const CompletedProcess completed =
      Complete(RunTask("ps", "parasol-ps-1", "echo \"$TF_CONFIG\"; exit 3"));
  EXPECT_EQ(completed.end.code(), 3);
  EXPECT_EQ(nlohmann::json::parse(completed.standard_output, nullptr, false),
            nlohmann::json::parse(R"({
    "cluster": {
      "chief": ["parasol-chief-0.parasol-chief:2222"],
      "ps": ["parasol-ps-0.parasol-ps:2222", "parasol-ps-1.parasol-ps:2222"],
      "worker": ["parasol-worker-0.parasol-worker:2222"]
    },
    "task": {"type": "ps", "index": 1}
  })"));
}

TEST(RunTaskTest, WithoutPsThereAreWorkersAlone) {
  SubprocessOptions options =
      RunTask("worker", "parasol-worker-0", "echo \"$TF_CONFIG\"; exit 3");
  options.environment["NUM_PS"] = "0";
  options.environment["NUM_WORKERS"] = "2";
  const CompletedProcess completed = Complete(options);
  EXPECT_EQ(nlohmann::json::parse(completed.standard_output, nullptr, false),
            nlohmann::json::parse(R"({
    "cluster": {
      "worker": ["parasol-worker-0.parasol-worker:2222",
                 "parasol-worker-1.parasol-worker:2222"]
    },
    "task": {"type": "worker", "index": 0}
  })"));
}

TEST(RunTaskTest, EvaluatorIsIndexZeroWhateverItsPodIsCalled) {
  const CompletedProcess completed = Complete(
      RunTask("evaluator", "parasol-evaluator-x7k2p", "echo \"$TF_CONFIG\""));
  EXPECT_EQ(completed.end.code(), 0);
  EXPECT_THAT(completed.standard_output,
              HasSubstr(R"("task":{"type":"evaluator","index":0})"));
}

TEST(RunTaskTest, OtherTasksHaveThePrefixAndSuffixOfThePodsName) {
  for (const char* pod : {"my-ps-parasol-ps-v2-1", "my-ps-parasol-ps-1"}) {
    const CompletedProcess completed =
        Complete(RunTask("ps", pod, "echo \"$TF_CONFIG\"; exit 3"));
    const std::string after = absl::StrContains(pod, "-v2") ? "-v2" : "";
    EXPECT_THAT(completed.standard_output,
                AllOf(HasSubstr(absl::StrCat("\"my-ps-parasol-worker", after,
                                             "-0.my-ps-parasol-worker", after,
                                             ":2222\"")),
                      HasSubstr(absl::StrCat("my-ps-parasol-ps", after,
                                             "-1.my-ps-parasol-ps", after)),
                      HasSubstr(R"("task":{"type":"ps","index":1})")));
  }
}

SubprocessOptions RunTaskOfJobSet(const std::string& role,
                                  const std::string& index,
                                  const std::string& command) {
  SubprocessOptions options = RunTask(role, "mnist-ps-0-1-x7k2p", command);
  options.environment["JOBSET_NAME"] = "mnist";
  options.environment["JOB_COMPLETION_INDEX"] = index;
  return options;
}

TEST(RunTaskTest, TfConfigNamesThePodsOfAJobSet) {
  const CompletedProcess completed =
      Complete(RunTaskOfJobSet("ps", "1", "echo \"$TF_CONFIG\""));
  // The pod of a complete task ends.
  EXPECT_EQ(completed.end.code(), 0);
  EXPECT_EQ(nlohmann::json::parse(completed.standard_output, nullptr, false),
            nlohmann::json::parse(R"({
    "cluster": {
      "chief": ["mnist-chief-0-0.mnist:2222"],
      "ps": ["mnist-ps-0-0.mnist:2222", "mnist-ps-0-1.mnist:2222"],
      "worker": ["mnist-worker-0-0.mnist:2222"]
    },
    "task": {"type": "ps", "index": 1}
  })"));
}

TEST(RunTaskTest, ASecondChiefIsAConfigurationError) {
  const CompletedProcess completed =
      Complete(RunTaskOfJobSet("chief", "1", "echo no"));
  EXPECT_EQ(completed.end.code(), 2);
  EXPECT_EQ(completed.standard_output, "");
  EXPECT_THAT(completed.standard_error,
              HasSubstr("chief/1: a job has one chief; set its replicas "
                        "(numNodes of a TrainJob) to 1"));
}

TEST(RunTaskTest, TerminationIsPassedOnAndItsCodeReturned) {
  const CompletedProcess completed =
      Complete(RunTask("worker", "parasol-worker-0",
                       "trap 'echo drained; exit 143' TERM; kill -TERM $PPID; "
                       "while :; do sleep 0.02; done"));
  EXPECT_EQ(completed.end.code(), 143);
  EXPECT_EQ(completed.standard_output, "drained\n");
}

// The ps waits for a checkpoint, then answers what it has read.
TEST(GracePeriodTest, APsHasTimeForACheckpointBeforeItIsKilled) {
  for (const char* path :
       {"deploy/k8s/base/ps.yaml", "deploy/k8s/tfjob.yaml"}) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::string> parts =
        absl::StrSplit(text, "terminationGracePeriodSeconds: ");
    ASSERT_GT(parts.size(), 1u) << path;
    for (size_t i = 1; i < parts.size(); ++i) {
      int seconds = 0;
      ASSERT_TRUE(
          absl::SimpleAtoi(parts[i].substr(0, parts[i].find('\n')), &seconds));
      EXPECT_GT(seconds, 50) << path;
    }
  }
}

TEST(TfJobTest, EveryReplicaIsRestartedByItsExitCode) {
  std::ifstream file("deploy/k8s/tfjob.yaml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> parts =
      absl::StrSplit(text, "restartPolicy: ExitCode");
  EXPECT_EQ(parts.size(), 5u);
  for (const char* role : {"Chief:", "PS:", "Worker:", "Evaluator:"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n    ", role, "\n")));
  }
  EXPECT_THAT(text, Not(HasSubstr("\t")));
}

// A Job and a Service for each worker, as in TensorFlow's ecosystem template.
TEST(WorkersTest, EachWorkerHasItsPlaceAndOnlyTheFirstTheVolume) {
  std::ifstream file("deploy/k8s/workers.yaml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> objects = absl::StrSplit(text, "\n---\n");
  ASSERT_EQ(objects.size(), 5u);
  for (const int i : {0, 1}) {
    const std::string name = absl::StrCat("\n  name: parasol-worker-", i, "\n");
    EXPECT_THAT(objects[1 + 2 * i],
                AllOf(HasSubstr("kind: Service"), HasSubstr(name),
                      HasSubstr("port: 2222")));
    EXPECT_THAT(objects[2 + 2 * i],
                AllOf(HasSubstr("kind: Job"), HasSubstr(name),
                      HasSubstr(absl::StrCat(R"("index": ")", i, "\"")),
                      HasSubstr("values: [1, 2]")));
  }
  EXPECT_THAT(objects[2], HasSubstr("mountPath: /checkpoints"));
  EXPECT_THAT(objects[4],
              AllOf(Not(HasSubstr("/checkpoints")), Not(HasSubstr("--job"))));
}

}  // namespace
}  // namespace parasol
