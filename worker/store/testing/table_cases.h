#ifndef PARASOL_WORKER_STORE_TESTING_TABLE_CASES_H_
#define PARASOL_WORKER_STORE_TESTING_TABLE_CASES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cluster/job/defaults.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/input/feature/batch.h"
#include "proto/job.pb.h"
#include "worker/store/testing/lone_worker.h"

namespace parasol {

// Every kind of look-up: a table that two inputs read, with L2 terms, weights
// and means, one beside it that shares a look-up, and one that nobody reads.
inline constexpr char kModel[] = R"(
  model {
    input { name: "x" dense { shape: 4 } }
    input { name: "pair" ids { column { name: "a" identity { num_ids: 100000 } }
                               column { name: "b" identity { num_ids: 100000 } } } }
    input { name: "many" ids {} }
    input { name: "more" ids {} }
    sparse_table { name: "spare" width: 7 }
    sparse_table { name: "deep" width: 5 }
    sparse_table { name: "wide" width: 1 }
    sparse_table { name: "bags" width: 3 OF_BAGS }
    layer { name: "e" input: "pair" embedding { table: "deep" } }
    layer { name: "flat" input: "e" flatten {} }
    layer { name: "w" input: "pair" embedding_bag { table: "wide" use_bias: true } }
    layer { name: "m" input: "many" embedding_bag { table: "bags" combiner: MEAN l2: .01 } }
    layer { name: "n" input: "more" embedding_bag { table: "bags" l2: .01 } }
    layer { name: "all" input: ["x", "flat", "w", "m", "n"] concatenate {} }
    layer { dense { units: 6 activation: TANH } }
    layer { dense { units: 3 } }
    loss { sparse_categorical_crossentropy {} }
  }
)";
inline constexpr size_t kTables = 4;
inline constexpr size_t kSpare = 0;
inline constexpr size_t kDeep = 1;
inline constexpr size_t kBags = 3;

inline job::Job ParseJob(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  FillDefaults(job);
  return job;
}

inline job::Job JobWith(const std::string& rest,
                        const std::string& of_bags = "") {
  return ParseJob(
      absl::StrCat(absl::StrReplaceAll(kModel, {{"OF_BAGS", of_bags}}), rest));
}

// Ids from `first` on, each `times` times, `ids_per_example` for an example.
inline IdFeature IdsOf(int64_t examples, int64_t ids_per_example,
                       uint64_t first, uint64_t distinct) {
  IdFeature feature = {.offsets = {0}};
  for (int64_t i = 0; i < examples * ids_per_example; ++i) {
    feature.ids.push_back(first + i * i % distinct);
  }
  for (int64_t i = 1; i <= examples; ++i) {
    feature.offsets.push_back(i * ids_per_example);
  }
  return feature;
}

// The batch of a step: of another size in some, and without ids of two inputs
// in others. Few rows are looked up often, some again in later steps, and some
// are new.
inline Batch BatchOf(int step) {
  const int64_t size = step % 3 == 2 ? 5 : 8;
  Batch batch = {.size = size, .dense = {{.shape = {4}}}};
  const std::vector<double> values = RandomMatrix(size, 4, step).values;
  batch.dense[0].values.assign(values.begin(), values.end());
  batch.ids = {IdsOf(size, 2, step * 3, /*distinct=*/7),
               IdsOf(size, step % 4 == 3 ? 0 : 4, step * 2, /*distinct=*/9),
               IdsOf(size, step % 4 == 3 ? 0 : 3, step, /*distinct=*/11)};
  const size_t weights = step % 2 == 1 ? batch.ids[1].ids.size() : 0;
  for (size_t i = 0; i < weights; ++i) {
    batch.ids[1].weights.push_back(.3f * (1 + i % 5));
  }
  for (int64_t i = 0; i < size; ++i) batch.labels.push_back((step + i) % 3);
  return batch;
}

inline void ExpectSame(LoneWorker& got, LoneWorker& want) {
  EXPECT_EQ(got.Variables(), want.Variables());
  for (size_t table = 0; table < want.parameters().num_tables(); ++table) {
    SCOPED_TRACE(absl::StrCat("table ", table));
    EXPECT_EQ(got.Table(table), want.Table(table));
    EXPECT_EQ(got.Sample(table), want.Sample(table));
  }
}

inline std::vector<double> Train(LoneWorker& worker, int first, int end) {
  std::vector<double> losses;
  for (int step = first; step < end; ++step) {
    losses.push_back(worker.Step(step, BatchOf(step)).loss_sum);
  }
  return losses;
}

inline constexpr char kManyRows[] = R"(
  model {
    input { name: "ids" ids {} }
    sparse_table { name: "rows" width: 4 }
    layer { input: "ids" embedding_bag { table: "rows" } }
    loss { sparse_categorical_crossentropy {} }
  }
  optimizer { adam {} }
)";

// Two tables in which the same ids are looked up.
inline constexpr char kTwoTables[] = R"(
  model {
    input { name: "ids" ids {} }
    sparse_table { name: "rows" width: 4 }
    sparse_table { name: "others" width: 4 }
    layer { name: "a" input: "ids" embedding_bag { table: "rows" } }
    layer { name: "b" input: "ids" embedding_bag { table: "others" } }
    layer { input: ["a", "b"] add {} }
    loss { sparse_categorical_crossentropy {} }
  }
  optimizer { adagrad {} }
)";

// `ids` per example, of which a third was there in the step before.
inline Batch ManyIds(int step, int64_t ids) {
  constexpr int64_t kExamples = 20;
  Batch batch = {.size = kExamples, .ids = {IdFeature{.offsets = {0}}}};
  const int64_t count = kExamples * ids;
  for (int64_t i = 0; i < count; ++i) {
    batch.ids[0].ids.push_back((step * count * 2 / 3 + i) * 7919);
    if ((i + 1) % ids == 0) batch.ids[0].offsets.push_back(i + 1);
  }
  for (int64_t i = 0; i < kExamples; ++i) batch.labels.push_back(i % 4);
  return batch;
}

inline Batch TwiceTheIds(Batch batch) {
  std::vector<uint64_t>& ids = batch.ids[0].ids;
  const std::vector<uint64_t> once = ids;
  ids.insert(ids.end(), once.begin(), once.end());
  for (int32_t& offset : batch.ids[0].offsets) offset *= 2;
  return batch;
}

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TESTING_TABLE_CASES_H_
