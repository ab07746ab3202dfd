#include "tests/cluster/cluster_runs.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "storage/checkpoint_store.h"

namespace parasol {

std::filesystem::path ClusterRunsTest::Directory(const std::string& run) {
  // Tests of two suites may have one name.
  const testing::TestInfo& test =
      *testing::UnitTest::GetInstance()->current_test_info();
  return std::filesystem::path(getenv("TEST_TMPDIR")) /
         absl::StrCat(test.test_suite_name(), "_", test.name(), "_", run);
}

std::unique_ptr<CheckpointReader> ClusterRunsTest::Newest(
    const std::string& run) {
  const CheckpointStore store(Directory(run));
  auto reader = CheckpointReader::Open(store.PathOf(store.ListSteps()->back()));
  EXPECT_OK(reader);
  return *std::move(reader);
}

std::map<std::string, std::vector<float>> ReadVariables(
    const CheckpointReader& checkpoint) {
  std::map<std::string, std::vector<float>> variables;
  for (const auto& variable : checkpoint.manifest().variable()) {
    int64_t elements = 1;
    for (const int64_t size : variable.shape()) elements *= size;
    std::vector<float>& values = variables[variable.name()];
    values.resize(elements);
    EXPECT_OK(checkpoint.ReadElements(variable.name(), kValueArray, 0,
                                      absl::MakeSpan(values)));
  }
  return variables;
}

Trained ReadTrained(const CheckpointReader& checkpoint) {
  Trained trained;
  trained.variables = ReadVariables(checkpoint);
  for (const auto& table : checkpoint.manifest().table()) {
    auto& rows = trained.tables[table.name()];
    std::vector<int64_t>& updates = trained.updates[table.name()];
    EXPECT_OK(checkpoint.ReadRows(table.name(), [&](const RowBatch& batch) {
      updates.push_back(batch.updates);
      const size_t floats =
          batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        const auto row = batch.rows.subspan(i * floats, floats);
        rows[batch.ids[i]].assign(row.begin(), row.end());
      }
      return absl::OkStatus();
    }));
  }
  return trained;
}

void MakeSynchronous(const Replicas& replicas, job::Job& job) {
  job::Synchronous& mode =
      *job.mutable_parameter_server()->mutable_synchronous();
  mode.set_replicas_to_aggregate(replicas.aggregate);
  mode.set_total_replicas(replicas.total);
  mode.set_lost_worker(job::Synchronous::REASSIGN);
}

}  // namespace parasol
