#include <algorithm>
#include <random>
#include <vector>

#include "base/row_hash.h"
#include "tests/benchmark/exchange_lane.h"

namespace parasol {
namespace {

constexpr float kRowGradient = 1e-3f;
// Different requests: so many that a request's rows have left the caches when
// it comes again.
constexpr size_t kRequests = 128;

// The n-th row's id: spread over all 64 bits (splitmix64), never 0, all
// different.
uint64_t IdOf(uint64_t n) {
  uint64_t id = (n + 1) * 0x9e3779b97f4a7c15;
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
  id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
  return id ^ (id >> 31);
}

class GrowthLane : public WorkQueue {
 public:
  GrowthLane(Session& session, const Contents& contents, size_t first = 0,
             size_t stride = 1)
      : session_(session),
        next_(first),
        stride_(stride),
        ids_(kRowsPerRequest),
        gradients_(kRowsPerRequest * contents.row_width, kRowGradient) {}

  void Start() override {
    for (uint64_t& id : ids_) {
      id = IdOf(next_);
      next_ += stride_;
    }
    session_.StartRows({.ids = ids_, .gradients = gradients_});
  }
  void Finish() override { session_.Finish(); }
  double amount() const override { return kRowsPerRequest; }

 private:
  Session& session_;
  uint64_t next_;
  const size_t stride_;
  std::vector<uint64_t> ids_;
  const std::vector<float> gradients_;
};

class RowLane : public WorkQueue {
 public:
  RowLane(Session& session, const Contents& contents, Direction direction,
          const Share& share, size_t rows)
      : session_(session),
        direction_(direction),
        ids_(kRequests, std::vector<uint64_t>(kRowsPerRequest)),
        gradients_(kRowsPerRequest * contents.row_width, kRowGradient) {
    GrowthLane fill(session, contents, share.index, share.sessions);
    for (size_t at = 0; at < rows / share.sessions; at += kRowsPerRequest) {
      fill.Start();
      fill.Finish();
    }
    std::mt19937_64 random(share.index);
    for (std::vector<uint64_t>& ids : ids_) {
      for (uint64_t& id : ids) {
        id = IdOf(random() % (rows / share.sessions) * share.sessions +
                  share.index);
      }
      // As a batch has them.
      std::stable_sort(ids.begin(), ids.end(), [](uint64_t a, uint64_t b) {
        return StripeOf(RowHash(a)) < StripeOf(RowHash(b));
      });
    }
    if (direction == Direction::kPush) return;
    values_.assign(share.window, std::vector<float>(gradients_.size()));
  }

  void Start() override {
    RowExchange exchange = {.ids = ids_[started_ % kRequests]};
    if (direction_ != Direction::kPull) exchange.gradients = gradients_;
    if (direction_ != Direction::kPush) {
      exchange.values = absl::MakeSpan(values_[started_ % values_.size()]);
    }
    session_.StartRows(exchange);
    ++started_;
  }
  void Finish() override { session_.Finish(); }
  double amount() const override { return kRowsPerRequest; }

 private:
  Session& session_;
  const Direction direction_;
  std::vector<std::vector<uint64_t>> ids_;
  const std::vector<float> gradients_;
  std::vector<std::vector<float>> values_;  // one for each in flight
  size_t started_ = 0;
};

}  // namespace

std::unique_ptr<WorkQueue> MakeRowLane(Session& session,
                                       const Contents& contents,
                                       Direction direction, const Share& share,
                                       size_t rows) {
  return std::make_unique<RowLane>(session, contents, direction, share, rows);
}

std::unique_ptr<WorkQueue> MakeGrowthLane(Session& session,
                                          const Contents& contents) {
  return std::make_unique<GrowthLane>(session, contents);
}

}  // namespace parasol
