#include <vector>

#include "tests/benchmark/exchange_lane.h"

namespace parasol {
namespace {

constexpr float kGradient = 1e-3f;

class VariableLane : public WorkQueue {
 public:
  VariableLane(Session& session, const Contents& contents, Direction direction,
               const Share& share)
      : session_(session),
        direction_(direction),
        share_(share),
        contents_(contents),
        gradient_(contents.elements, kGradient) {
    if (direction == Direction::kPush) return;
    values_.assign(share.window, std::vector<float>(contents.elements));
  }

  void Start() override {
    VariableExchange exchange = {.variable = variable()};
    if (direction_ != Direction::kPull) exchange.gradient = gradient_;
    if (direction_ != Direction::kPush) {
      exchange.values = absl::MakeSpan(values_[started_ % share_.window]);
    }
    session_.Start(exchange);
    ++started_;
  }
  void Finish() override { session_.Finish(); }
  double amount() const override { return contents_.variable_bytes(); }

 private:
  size_t variable() const {
    return (started_ * share_.sessions + share_.index) % contents_.variables;
  }

  Session& session_;
  const Direction direction_;
  const Share share_;
  const Contents contents_;
  const std::vector<float> gradient_;
  std::vector<std::vector<float>> values_;  // one for each in flight
  size_t started_ = 0;
};

class StepLane : public WorkQueue {
 public:
  StepLane(Session& session, const Contents& contents, StepAs as)
      : session_(session),
        as_(as),
        gradients_(contents.variables * contents.elements, kGradient),
        values_(gradients_.size()) {
    for (size_t i = 0; i < contents.variables; ++i) {
      const size_t first = i * contents.elements;
      exchanges_.push_back({.variable = i,
                            .gradient = absl::MakeConstSpan(gradients_)
                                            .subspan(first, contents.elements),
                            .values = absl::MakeSpan(values_).subspan(
                                first, contents.elements)});
    }
  }

  void Start() override {
    if (as_ == StepAs::kOneExchange) return session_.StartStep(exchanges_);
    session_.Session::StartStep(exchanges_);
  }
  void Finish() override { session_.Finish(); }
  double amount() const override { return 1; }

 private:
  Session& session_;
  const StepAs as_;
  const std::vector<float> gradients_;
  std::vector<float> values_;
  std::vector<VariableExchange> exchanges_;
};

}  // namespace

std::string NameOf(Direction direction) {
  switch (direction) {
    case Direction::kPush:
      return "push";
    case Direction::kPull:
      return "pull";
    case Direction::kPushPull:
      return "push+pull";
  }
  return "";
}

std::unique_ptr<WorkQueue> MakeVariableLane(Session& session,
                                            const Contents& contents,
                                            Direction direction,
                                            const Share& share) {
  return std::make_unique<VariableLane>(session, contents, direction, share);
}

std::unique_ptr<WorkQueue> MakeStepLane(Session& session,
                                        const Contents& contents, StepAs as) {
  return std::make_unique<StepLane>(session, contents, as);
}

}  // namespace parasol
