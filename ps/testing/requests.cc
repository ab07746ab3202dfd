#include "ps/testing/requests.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "ml/optimizer/custom_optimizer.h"

namespace parasol {
namespace {

// Momentum, of a user's own: a slot that begins with 1, rows that go on.
class OwnMomentum : public CustomUpdate {
 public:
  std::vector<Slot> slots() const override {
    return {{.name = "m", .initial_value = 1}};
  }
  Optimizer::OtherRows other_rows() const override {
    return Optimizer::OtherRows::kAll;
  }
  void Apply(const Step& step, const Elements& elements) const override {
    const auto rate = static_cast<float>(step.learning_rate);
    for (size_t i = 0; i < elements.count; ++i) {
      float& m = elements.slots[0][i];
      m = .5f * m + elements.gradient[i];
      elements.value[i] -= rate * m;
    }
  }
};

const CustomOptimizerRegistration kRegistration(
    "own", [](const job::CustomOptimizer&) {
      return std::make_unique<OwnMomentum>();
    });

class AddingOptimizer : public Optimizer {
 public:
  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }
  float InitialSlotValue(size_t) const override { return 100; }

  void Apply(int64_t, const UpdateSpan& update) const override {
    for (size_t i = 0; i < update.count; ++i) {
      float gradient;
      std::memcpy(&gradient, update.gradient + i * sizeof(float),
                  sizeof(float));
      update.new_value[i] = update.value[i] + gradient;
      update.slots[0][i] += gradient;
    }
  }

  // A ps asks for none: it has its elements in the host's memory.
  UpdateRule RuleAt(int64_t) const override { return {}; }
  OtherRows other_rows() const override { return OtherRows::kUntouched; }

  void ApplyRows(int64_t iterations, const RowUpdate& update) const override {
    for (size_t i = 0; i < update.count; ++i) {
      float* const row = update.rows[i];
      float* const sum = row + update.width;
      Apply(iterations, {.count = update.width,
                         .gradient = update.gradient(i),
                         .value = row,
                         .new_value = row,
                         .slots = absl::MakeConstSpan(&sum, 1)});
    }
  }

 private:
  const std::vector<std::string> slot_names_ = {"sum"};
};

}  // namespace

wire::PartSpec MakePart(uint32_t id, const std::string& variable,
                        int64_t variable_elements, int64_t first,
                        int64_t elements) {
  wire::PartSpec part;
  part.set_id(id);
  part.set_variable(variable);
  part.add_variable_shape(variable_elements);
  part.set_first_element(first);
  part.set_elements(elements);
  part.mutable_initializer()->mutable_zeros();
  return part;
}

wire::TensorRange MakeRange(uint32_t part, uint64_t first, uint64_t count) {
  wire::TensorRange range;
  range.set_part(part);
  range.set_first(first);
  range.set_count(count);
  return range;
}

wire::Push MakePush(uint64_t sequence,
                    const std::vector<wire::TensorRange>& ranges) {
  wire::Push push;
  push.set_sequence(sequence);
  push.mutable_range()->Assign(ranges.begin(), ranges.end());
  return push;
}

wire::Pull MakePull(const std::vector<wire::TensorRange>& ranges) {
  wire::Pull pull;
  pull.mutable_range()->Assign(ranges.begin(), ranges.end());
  return pull;
}

wire::Operation OperationOf(const wire::Push& push) {
  wire::Operation operation;
  *operation.mutable_push() = push;
  return operation;
}

wire::Operation OperationOf(const wire::Pull& pull) {
  wire::Operation operation;
  *operation.mutable_pull() = pull;
  return operation;
}

wire::Operation OperationOf(const wire::RowPush& push) {
  wire::Operation operation;
  *operation.mutable_row_push() = push;
  return operation;
}

wire::Operation OperationOf(const wire::RowPull& pull) {
  wire::Operation operation;
  *operation.mutable_row_pull() = pull;
  return operation;
}

std::string Floats(size_t count, float value) {
  const std::vector<float> floats(count, value);
  return std::string(reinterpret_cast<const char*>(floats.data()),
                     count * sizeof(float));
}

std::string Halves(size_t count, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const std::vector<uint16_t> halves(count, bits >> 16);
  return std::string(reinterpret_cast<const char*>(halves.data()),
                     count * sizeof(uint16_t));
}

OperationDone PendingResult::Done() {
  return [state = state_](absl::StatusOr<OperationResult> result) {
    if (result.ok() && result->read != nullptr) result = result->read();
    absl::MutexLock lock(&state->mu);
    CHECK(!state->result.has_value()) << "done twice";
    state->result = std::move(result);
  };
}

bool PendingResult::is_done() const {
  absl::MutexLock lock(&state_->mu);
  return state_->result.has_value();
}

const absl::StatusOr<OperationResult>& PendingResult::Get() const {
  absl::MutexLock lock(&state_->mu);
  CHECK(state_->result.has_value()) << "not done";
  return *state_->result;
}

PayloadView ViewOf(const std::string& bytes) {
  return ViewOf(bytes, bytes.size());
}

PayloadView ViewOf(const std::string& bytes, size_t piece_bytes) {
  PayloadView::Pieces pieces;
  for (size_t first = 0; first < bytes.size(); first += piece_bytes) {
    pieces.push_back(absl::string_view(bytes).substr(first, piece_bytes));
  }
  return PayloadView(std::move(pieces));
}

std::vector<float> FloatsOf(absl::Span<const PayloadRef> payloads) {
  std::vector<float> floats;
  for (const PayloadRef& payload : payloads) {
    const float* data = static_cast<const float*>(payload.data);
    floats.insert(floats.end(), data, data + payload.size / sizeof(float));
  }
  return floats;
}

std::unique_ptr<const Optimizer> MakeAddingOptimizer() {
  return std::make_unique<AddingOptimizer>();
}

std::vector<const google::protobuf::FieldDescriptor*> AllOptimizers() {
  const google::protobuf::OneofDescriptor& kinds =
      *job::Optimizer::descriptor()->FindOneofByName("kind");
  std::vector<const google::protobuf::FieldDescriptor*> all;
  for (int i = 0; i < kinds.field_count(); ++i) {
    const auto optimizer = MakeOptimizer(OptimizerOfKind(kinds.field(i)));
    if (optimizer.ok() && (*optimizer)->needs_whole_variable()) continue;
    if (OptimizerOfKind(kinds.field(i)).has_rowwise_adagrad()) continue;
    all.push_back(kinds.field(i));
  }
  return all;
}

job::Optimizer OptimizerOfKind(const google::protobuf::FieldDescriptor* kind) {
  job::Optimizer optimizer;
  optimizer.GetReflection()->MutableMessage(&optimizer, kind);
  if (!optimizer.has_custom()) return optimizer;
  optimizer.mutable_custom()->set_type("own");
  job::CustomSlot& slot = *optimizer.mutable_custom()->add_slot();
  slot.set_name("m");
  slot.set_initial_value(1);
  return optimizer;
}

}  // namespace parasol
