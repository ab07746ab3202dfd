#ifndef PARASOL_PS_TESTING_SYNCHRONOUS_SHARD_H_
#define PARASOL_PS_TESTING_SYNCHRONOUS_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/testing/requests.h"

namespace parasol {

// The gradient of a step that trains variables "v0" and "v1" of one element,
// and the table "t" of one element a row.
struct StepGradient {
  float v0 = 0;
  float v1 = 0;
  std::vector<uint64_t> rows = {};
  std::vector<float> of_rows = {};
};

inline wire::LoadRequest MakeSynchronousOrder(int replicas_to_aggregate,
                                              int total_replicas) {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(2);
  *order.add_part() = MakePart(0, "v0", 1, 0, 1);
  *order.add_part() = MakePart(1, "v1", 1, 0, 1);
  order.mutable_part(1)->mutable_initializer()->mutable_constant()->set_value(
      1);
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(1);
  table.mutable_initializer()->mutable_constant()->set_value(4);
  order.mutable_sync()->set_replicas_to_aggregate(replicas_to_aggregate);
  order.mutable_sync()->set_total_replicas(total_replicas);
  return order;
}

// A shard of synchronous training, and what tests ask of it.
class SynchronousShard {
 public:
  explicit SynchronousShard(const wire::LoadRequest& order,
                            uint64_t memory_bytes = UINT64_MAX)
      : table_(*LoadShard(order, {.memory_bytes = memory_bytes})) {}
  SynchronousShard(int replicas_to_aggregate, int total_replicas)
      : SynchronousShard(
            MakeSynchronousOrder(replicas_to_aggregate, total_replicas)) {}

  ParameterShard& table() { return *table_; }

  struct Pushed {
    PendingResult dense, rows;
    bool is_done() const { return dense.is_done() && rows.is_done(); }
  };

  Pushed Push(int64_t step, int replica, const StepGradient& gradient,
              uint64_t worker = 7) {
    Pushed pushed;
    wire::Push push = MakePush(0, {MakeRange(0, 0, 1), MakeRange(1, 0, 1)});
    push.mutable_sync()->set_step(step);
    push.mutable_sync()->set_replica(replica);
    const std::string v0 = Floats(1, gradient.v0), v1 = Floats(1, gradient.v1);
    table_->Execute(worker, OperationOf(push), {{ViewOf(v0), ViewOf(v1)}},
                    pushed.dense.Done());
    wire::RowPush row_push;
    row_push.set_rows(gradient.rows.size());
    *row_push.mutable_sync() = push.sync();
    const std::string ids = BytesOf(gradient.rows),
                      of_rows = BytesOf(gradient.of_rows);
    table_->Execute(worker, OperationOf(row_push),
                    {{ViewOf(ids), ViewOf(of_rows)}}, pushed.rows.Done());
    return pushed;
  }

  PendingResult Pull(int64_t min_updates) {
    PendingResult pulled;
    wire::Pull pull = MakePull({MakeRange(0, 0, 1), MakeRange(1, 0, 1)});
    pull.set_min_updates(min_updates);
    table_->Execute(/*worker_incarnation=*/1, OperationOf(pull), {},
                    pulled.Done());
    return pulled;
  }

  // Returns the values of now, not of the step before.
  std::vector<float> Values() {
    return FloatsOf(Pull(Updates()).Get()->payloads);
  }

  PendingResult PullRows(const std::vector<uint64_t>& rows,
                         int64_t min_updates = 0) {
    PendingResult pulled;
    wire::RowPull pull;
    pull.set_rows(rows.size());
    pull.set_min_updates(min_updates);
    const std::string ids = BytesOf(rows);
    table_->Execute(/*worker_incarnation=*/1, OperationOf(pull),
                    {{ViewOf(ids)}}, pulled.Done());
    return pulled;
  }

  std::vector<float> Rows(const std::vector<uint64_t>& rows) {
    return FloatsOf(PullRows(rows, Updates()).Get()->payloads);
  }

  int64_t Updates() {
    return table_->TakeSnapshot().chunks[0].contents.updates;
  }

 private:
  template <typename T>
  static std::string BytesOf(const std::vector<T>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(T));
  }

  std::unique_ptr<ParameterShard> table_;
};

}  // namespace parasol

#endif  // PARASOL_PS_TESTING_SYNCHRONOUS_SHARD_H_
