#ifndef PARASOL_PS_TESTING_REQUESTS_H_
#define PARASOL_PS_TESTING_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/payload.h"
#include "google/protobuf/descriptor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"

// Requests and other helpers for tests of the ps.
namespace parasol {

// Returns a part: elements [first, first + elements) of a variable of
// `variable_elements`.
wire::PartSpec MakePart(uint32_t id, const std::string& variable,
                        int64_t variable_elements, int64_t first,
                        int64_t elements);

wire::TensorRange MakeRange(uint32_t part, uint64_t first, uint64_t count);

wire::Push MakePush(uint64_t sequence,
                    const std::vector<wire::TensorRange>& ranges);
wire::Pull MakePull(const std::vector<wire::TensorRange>& ranges);

wire::Operation OperationOf(const wire::Push& push);
wire::Operation OperationOf(const wire::Pull& pull);
wire::Operation OperationOf(const wire::RowPush& push);
wire::Operation OperationOf(const wire::RowPull& pull);

// Returns `count` float32 of `value`, as bytes.
std::string Floats(size_t count, float value);

// Returns a view of `bytes`, as one piece or cut into pieces of `piece_bytes`.
// Points into `bytes`.
PayloadView ViewOf(const std::string& bytes);
PayloadView ViewOf(const std::string& bytes, size_t piece_bytes);

// Returns `count` bfloat16 of `value`, which a bfloat16 must hold exactly.
std::string Halves(size_t count, float value);

// The receiver of an operation's result. Thread-safe; may be destroyed before
// its callback is called.
class PendingResult {
 public:
  // Returns the callback; call it once. A pull that has waited is read at once.
  OperationDone Done();
  bool is_done() const;
  // Returns the result; requires is_done().
  const absl::StatusOr<OperationResult>& Get() const;

 private:
  struct State {
    absl::Mutex mu;
    std::optional<absl::StatusOr<OperationResult>> result ABSL_GUARDED_BY(mu);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

std::vector<float> FloatsOf(absl::Span<const PayloadRef> payloads);

// Returns an optimizer that does value += gradient, and the same with its slot
// "sum", which starts at 100.
std::unique_ptr<const Optimizer> MakeAddingOptimizer();

// Returns the members of job::Optimizer's choice, one for each optimizer that
// ps can use for variables: none that needs whole ones, and none of rows alone.
std::vector<const google::protobuf::FieldDescriptor*> AllOptimizers();

// Returns the optimizer that is one of AllOptimizers(). The custom one has a
// type and a slot, and is registered in this program.
job::Optimizer OptimizerOfKind(const google::protobuf::FieldDescriptor* kind);

}  // namespace parasol

#endif  // PARASOL_PS_TESTING_REQUESTS_H_
