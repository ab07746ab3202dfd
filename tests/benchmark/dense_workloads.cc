#include "absl/strings/str_cat.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/exchange_lane.h"
#include "tests/benchmark/memory_contender.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/plain_contender.h"
#include "tests/benchmark/tcp_contender.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

constexpr Unit kGigabytes = {"GB/s", 1e-9};
constexpr char kGrpc[] = "Parasol, in gRPC";
constexpr char kTls[] = "Parasol, in TLS";
constexpr char kGrpcTls[] = "Parasol, in gRPC in TLS";

// As many variables of a size as make 32 MiB: the exchanges in flight are all
// of different ones, and twice what is in flight does not fit the caches.
Contents VariablesOf(size_t bytes) {
  return {.variables = kMaxVariableBytes / bytes,
          .elements = bytes / sizeof(float)};
}

// 1000 variables of 4 KiB.
Contents SmallVariables() { return {.variables = 1000, .elements = 1024}; }

FigureTarget DenseTarget() {
  return FigureTarget::All({{.9, "raw TCP"}, {2.4, "plain gRPC"}});
}

// The floors and Parasol, doing the same.
std::vector<Measurement> CompareAll(const Settings& settings,
                                    const Contents& contents,
                                    const MakeLane& make_lane,
                                    const FigureTarget& target) {
  const size_t bytes = contents.variable_bytes();
  Lineup lineup(settings);
  lineup.Add("memcpy", [&] {
    return Enter(MakeMemoryContender(contents), bytes, make_lane);
  });
  lineup.Add("raw TCP, 1 stream", [&] {
    return Enter(MakeTcpContender("raw TCP, 1 stream", contents, 1), bytes,
                 make_lane);
  });
  lineup.Add("raw TCP", [&] {
    return Enter(MakeTcpContender("raw TCP", contents, 2), bytes, make_lane);
  });
  lineup.Add("raw TCP, 4 streams", [&] {
    return Enter(MakeTcpContender("raw TCP, 4 streams", contents, 4), bytes,
                 make_lane);
  });
  lineup.Add("plain gRPC", [&] {
    return Enter(MakePlainContender(contents), bytes, make_lane);
  });
  lineup.Add("Parasol", [&] {
    return Enter(MakeParasolContender("Parasol", contents, settings.client),
                 bytes, make_lane, target);
  });
  lineup.Add(kGrpc, [&] {
    ParameterClient::Options options = settings.client;
    options.tcp_lanes = false;
    return Enter(MakeParasolContender(kGrpc, contents, options), bytes,
                 make_lane);
  });
  lineup.Add(kTls, [&] {
    ParameterClient::Options options = settings.client;
    options.trust = TrustOfBenchmark(PeerRole::kWorker);
    return Enter(MakeParasolContender(kTls, contents, options), bytes,
                 make_lane);
  });
  lineup.Add(kGrpcTls, [&] {
    ParameterClient::Options options = settings.client;
    options.tcp_lanes = false;
    options.trust = TrustOfBenchmark(PeerRole::kWorker);
    return Enter(MakeParasolContender(kGrpcTls, contents, options), bytes,
                 make_lane);
  });
  lineup.Add(kOneMachine, [&] {
    ParameterClient::Options options = settings.client;
    options.shared_memory = true;
    return Enter(MakeParasolContender(kOneMachine, contents, options), bytes,
                 make_lane, FigureTarget::All({{1.3, "raw TCP"}}));
  });
  return lineup.Measure();
}

MakeLane VariableLanes(const Contents& contents, Direction direction) {
  return [contents, direction](Session& session, const Share& share) {
    return MakeVariableLane(session, contents, direction, share);
  };
}

std::string Size(size_t bytes) {
  if (bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes % (1 << 10) == 0) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes, " B");
}

void RunDense(const Settings& settings, Direction direction,
              const TakeComparison& take) {
  for (const size_t bytes : settings.variable_bytes) {
    const Contents contents = VariablesOf(bytes);
    take({.workload = absl::StrCat(NameOf(direction), " ", Size(bytes)),
          .unit = kGigabytes,
          .measurements =
              CompareAll(settings, contents, VariableLanes(contents, direction),
                         DenseTarget())});
  }
}

}  // namespace

void RunPush(const Settings& settings, const TakeComparison& take) {
  RunDense(settings, Direction::kPush, take);
}

void RunPull(const Settings& settings, const TakeComparison& take) {
  RunDense(settings, Direction::kPull, take);
}

void RunPushPull(const Settings& settings, const TakeComparison& take) {
  RunDense(settings, Direction::kPushPull, take);
}

void RunSmall(const Settings& settings, const TakeComparison& take) {
  const Contents contents = SmallVariables();
  const double bytes = contents.variable_bytes();
  for (const Direction direction : {Direction::kPush, Direction::kPull}) {
    take({.workload = absl::StrCat(NameOf(direction), " 4 KiB"),
          .unit = {"k req/s", 1e-3 / bytes},
          .measurements = CompareAll(
              settings, contents, VariableLanes(contents, direction),
              FigureTarget::Any({{110e3 * bytes}, {1, "raw TCP, 1 stream"}}))});
  }
}

void RunSteps(const Settings& settings, const TakeComparison& take) {
  const Contents contents = SmallVariables();
  const auto step = [&](StepAs as) {
    return [&, as](Session& session, const Share&) {
      return MakeStepLane(session, contents, as);
    };
  };
  // One step at a time.
  const size_t bytes = contents.variables * contents.variable_bytes();
  const auto enter = [&](Contender contender, StepAs as,
                         FigureTarget target = {}) {
    Entrant entrant = Enter(std::move(contender), bytes, step(as), target);
    entrant.window = 1;
    return entrant;
  };
  Lineup lineup(settings);
  lineup.Add("plain gRPC", [&] {
    return enter(MakePlainContender(contents), StepAs::kExchangePerVariable);
  });
  lineup.Add("Parasol, one by one", [&] {
    return enter(
        MakeParasolContender("Parasol, one by one", contents, settings.client),
        StepAs::kExchangePerVariable);
  });
  lineup.Add("Parasol", [&] {
    return enter(
        MakeParasolContender("Parasol", contents, settings.client),
        StepAs::kOneExchange,
        FigureTarget::All({{10, "Parasol, one by one"}, {10, "plain gRPC"}}));
  });
  take({.workload = "1000 x 4 KiB",
        .unit = {"steps/s", 1},
        .measurements = lineup.Measure()});
}

void RunEncodings(const Settings& settings, const TakeComparison& take) {
  const Contents contents = VariablesOf(16 << 20);
  Lineup lineup(settings);
  const auto add = [&](const std::string& name,
                       const ParameterClient::Options& options) {
    lineup.Add(name, [&] {
      return Enter(MakeParasolContender(name, contents, options),
                   contents.variable_bytes(),
                   VariableLanes(contents, Direction::kPush));
    });
  };
  ParameterClient::Options options = settings.client;
  add("Parasol", options);
  options.wire_encoding = job::FLOAT16;
  add("Parasol, float16", options);
  options.wire_encoding = job::BFLOAT16;
  add("Parasol, bfloat16", options);
  options.wire_encoding = job::FLOAT32;
  options.push_share = .01;
  add("Parasol, top 1 %", options);
  take({.workload = "encoded 16 MiB",
        .unit = kGigabytes,
        .measurements = lineup.Measure()});
}

}  // namespace parasol
