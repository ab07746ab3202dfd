// `parasol cluster` as users start it.

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/cluster_spec/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

using Environment = std::map<std::string, std::string>;

CompletedProcess Cluster(const std::vector<std::string>& flags,
                         const Environment& environment = {}) {
  SubprocessOptions options;
  options.argv = {absl::StrCat(getenv("TEST_SRCDIR"), "/",
                               getenv("TEST_WORKSPACE"), "/tool/parasol"),
                  "cluster"};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.environment = environment;
  absl::StatusOr<CompletedProcess> run =
      RunSubprocess(std::move(options), absl::Seconds(60));
  EXPECT_OK(run);
  return run.value_or(CompletedProcess());
}

Environment SlurmProcess(int rank) {
  return {{"SLURM_STEP_NODELIST", "n[09-10]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_PROCID", absl::StrCat(rank)}};
}

TEST(ClusterCommandTest, EachProcessOfAStepGetsItsOwnTask) {
  const std::string cluster =
      R"({"cluster":{"chief":["n09:8888"],"ps":["n09:8889"],)"
      R"("worker":["n10:8888","n10:8889"]},)";
  const std::pair<std::string, int> tasks[] = {
      {"chief", 0}, {"ps", 0}, {"worker", 0}, {"worker", 1}};
  for (int rank = 0; rank < 4; ++rank) {
    const CompletedProcess run =
        Cluster({"--from=slurm", "--chief", "--ps=1"}, SlurmProcess(rank));
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    EXPECT_EQ(run.standard_output,
              absl::StrCat(cluster, R"("task":{"type":")", tasks[rank].first,
                           R"(","index":)", tasks[rank].second, "}}\n"));
  }
}

TEST(ClusterCommandTest, OpenMpiTakesTheHostsFromAListOrAFile) {
  const Environment process = {{"OMPI_COMM_WORLD_SIZE", "3"},
                               {"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  const std::string path = testing::TempDir() + "/hostfile";
  std::ofstream(path) << "a slots=2\nb slots=2\n";
  for (const std::string& hosts :
       {std::string("--hosts=a:2,b:2"), "--hostfile=" + path}) {
    const CompletedProcess run =
        Cluster({"--from=openmpi", hosts, "--base_port=2222"}, process);
    EXPECT_EQ(run.standard_output,
              R"({"cluster":{"worker":["a:2222","a:2223","b:2222"]},)"
              R"("task":{"type":"worker","index":2}})"
              "\n")
        << run.standard_error;
  }
}

TEST(ClusterCommandTest, AListOfHostsWithATaskNeedsNoVariable) {
  const std::vector<std::string> flags = {"--from=hosts", "--hosts=a,b:2,c",
                                          "--ps=1", "--task=worker/2"};
  const CompletedProcess run = Cluster(flags);
  const std::string line(absl::StripSuffix(run.standard_output, "\n"));
  ASSERT_OK_AND_ASSIGN(
      const TaskConfig config,
      ParseTfConfig(line, Role::kWorker, StrategyKind::kParameterServer));
  EXPECT_EQ(config.address, "c:8888");
  EXPECT_EQ(config.chief_address, "b:8888");
}

TEST(ClusterCommandTest, RoleAndClusterArePrintedAlone) {
  EXPECT_EQ(Cluster({"--from=slurm", "--ps=1", "--print=role"}, SlurmProcess(0))
                .standard_output,
            "ps\n");
  EXPECT_EQ(Cluster({"--from=slurm", "--print=cluster"}, SlurmProcess(1))
                .standard_output,
            R"({"worker":["n09:8888","n09:8889","n10:8888","n10:8889"]})"
            "\n");
}

TEST(ClusterCommandTest, MistakesAreOneLineAndExitCode2) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "--from=: give slurm, openmpi or hosts"},
      {{"--from=pbs"}, "--from=pbs: give slurm"},
      {{"--from=slurm", "x"}, "unexpected argument x"},
      {{"--from=slurm", "--hosts=a"}, "not with --from=slurm"},
      {{"--from=slurm", "--task=worker/0"}, "--task: only --from=hosts"},
      {{"--from=slurm", "--ps=4"}, "TF_CONFIG: cluster.worker: no task"},
      {{"--from=slurm", "--ps=5"}, "--ps=5: 5 tasks, but SLURM_STEP_NUM_TASKS"},
      {{"--from=slurm", "--print=x"}, "--print=x: give tf_config"},
      {{"--from=slurm", "--strategy=x"}, "--strategy=x: must be"},
      {{"--from=openmpi"}, "--from=openmpi: give either --hosts"},
      {{"--from=openmpi", "--hosts=a"}, "OMPI_COMM_WORLD_SIZE: is not set"},
      {{"--from=openmpi", "--hosts=a;b"}, "--hosts: \"a;b\" is not a host"},
      {{"--from=hosts", "--hosts=a"}, "--task is missing"},
      {{"--from=hosts", "--hostfile=/none", "--task=worker/0"},
       "--hostfile=/none: can't be read"},
      {{"--from=hosts", "--hostfile=/", "--task=worker/0"},
       "--hostfile=/: can't be read"},
      {{"--from=hosts", "--hosts=a", "--task=worker/1"},
       "--task=\"worker/1\": the cluster has no such task"}};
  for (const auto& [flags, words] : cases) {
    SCOPED_TRACE(words);
    const CompletedProcess run = Cluster(flags, SlurmProcess(0));
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error,
                AllOf(MatchesRegex("parasol: [^\n]*\n"), HasSubstr(words)));
    EXPECT_THAT(run.standard_output, IsEmpty());
  }
}

}  // namespace
}  // namespace parasol
