// A rank that all-reduces with Gloo over TCP: gloo_rank ring|halving RANK RANKS
// FOLDER BYTES,BYTES,...
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/barrier.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/tcp/device.h"
#include "tests/benchmark/collective/rank_timing.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

void Ring(const Context& context, size_t bytes, int rank, int ranks) {
  const size_t count = bytes / sizeof(float);
  std::vector<float> values(count, parasol::ContributionOfRank(rank));
  std::vector<float> sums(count);
  gloo::AllreduceOptions options(context);
  options.setInput(values.data(), count);
  options.setOutput(sums.data(), count);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  using Sum = void (*)(void*, const void*, const void*, size_t);
  options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
  parasol::TimeRounds(bytes, rank == 0, [&] { gloo::allreduce(options); });
  parasol::CheckSums(sums.data(), count, ranks);
}

void Halving(const Context& context, size_t bytes, int rank, int ranks) {
  const size_t count = bytes / sizeof(float);
  std::vector<float> sums(count, parasol::ContributionOfRank(rank));
  gloo::AllreduceHalvingDoubling<float> algorithm(context, {sums.data()},
                                                  static_cast<int>(count));
  algorithm.run();
  parasol::CheckSums(sums.data(), count, ranks);
  // In place, so that later rounds don't overflow.
  std::fill(sums.begin(), sums.end(), 0);
  parasol::TimeRounds(bytes, rank == 0, [&] { algorithm.run(); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[2]);
  const int ranks = std::atoi(argv[3]);
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  gloo::rendezvous::FileStore store(argv[4]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  std::stringstream sizes(argv[5]);
  for (std::string size; std::getline(sizes, size, ',');) {
    const size_t bytes = std::stoull(size);
    const bool ring = std::strcmp(argv[1], "ring") == 0;
    (ring ? Ring : Halving)(context, bytes, rank, ranks);
  }
  // A rank that ends first would break the others' connections.
  gloo::BarrierOptions last(context);
  gloo::barrier(last);
  return 0;
}
