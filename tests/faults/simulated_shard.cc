#include "tests/faults/simulated_shard.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_table.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "ps/dense/dense_parts.h"
#include "ps/dense/part_layout.h"
#include "ps/dense/part_optimizers.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/training_rules.h"

namespace parasol {
namespace {

std::unique_ptr<const Optimizer> MakeSgd() {
  job::Optimizer spec;
  spec.mutable_sgd()->set_learning_rate(.3);
  auto optimizer = MakeOptimizer(spec);
  CHECK(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

PartLayout MakeLayout(int shard, int variables) {
  google::protobuf::RepeatedPtrField<wire::PartSpec> parts;
  for (int i = 0; i < variables; ++i) {
    wire::PartSpec& part = *parts.Add();
    part.set_id(i);
    part.set_variable(absl::StrCat("v", shard, "/", i));
    part.add_variable_shape(1);
    part.set_elements(1);
  }
  auto layout = PartLayout::Create(parts, /*max_elements=*/UINT64_MAX);
  CHECK(layout.ok()) << layout.status();
  return *std::move(layout);
}

}  // namespace

SavedShard SaveShard(ShardSnapshot& snapshot) {
  SavedShard saved;
  saved.updates = snapshot.tables[0].updates();
  for (const ShardSnapshot::Chunk& chunk : snapshot.chunks) {
    CHECK_EQ(chunk.contents.updates, saved.updates);
    saved.values.push_back(chunk.contents.value.span()[0]);
  }
  const absl::Status drained =
      snapshot.tables[0].Drain([&saved](const RowBatch& batch) {
        saved.ids.insert(saved.ids.end(), batch.ids.begin(), batch.ids.end());
        saved.rows.insert(saved.rows.end(), batch.rows.begin(),
                          batch.rows.end());
        return absl::OkStatus();
      });
  CHECK(drained.ok()) << drained;
  return saved;
}

std::unique_ptr<ParameterShard> MakeSimulatedShard(int shard,
                                                   const wire::SyncSpec& sync,
                                                   uint64_t memory_bytes,
                                                   const SavedShard& saved,
                                                   StepState::Origin origin) {
  const TrainingRules rules{
      .replicas_to_aggregate =
          static_cast<size_t>(sync.replicas_to_aggregate()),
      .origin = origin,
      .memory = std::make_shared<RowMemory>(memory_bytes)};
  auto dense = DenseParts::Create(
      MakeLayout(shard, static_cast<int>(saved.values.size())),
      PartOptimizers(MakeSgd()), rules,
      [&](const wire::PartSpec& part, int, int64_t,
          absl::Span<float> out) -> absl::StatusOr<int64_t> {
        out[0] = saved.values[part.id()];
        return saved.updates;
      });
  CHECK(dense.ok()) << dense.status();
  RowTable::Options table{.name = "t", .width = 1};
  table.initializer.mutable_constant()->set_value(2);
  auto rows = RowTable::Create(table, MakeSgd());
  CHECK(rows.ok()) << rows.status();
  const absl::Status inserted = (*rows)->Insert(
      {.updates = saved.updates, .ids = saved.ids, .rows = saved.rows});
  CHECK(inserted.ok()) << inserted;
  std::vector<std::unique_ptr<SparseTable>> tables;
  tables.push_back(std::make_unique<SparseTable>(*std::move(rows), rules));
  return std::make_unique<ParameterShard>(*std::move(dense), std::move(tables),
                                          sync, DedupWindows());
}

}  // namespace parasol
