#include <string>

#include "proto/parameter.pb.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

// Measures equal pushes to ps that keep them in different ways, one after the
// other.
std::vector<Measurement> CompareJournals(const Settings& settings,
                                         const Contents& contents, size_t bytes,
                                         const MakeLane& make_lane) {
  Lineup lineup(settings);
  lineup.Add("Parasol", [&] {
    return Enter(MakeParasolContender("Parasol", contents, settings.client),
                 bytes, make_lane);
  });
  const auto add = [&](const std::string& name,
                       wire::LoadRequest::Journal journal, double share) {
    lineup.Add(name, [&] {
      return Enter(
          MakeJournalContender(name, contents, settings.client, journal), bytes,
          make_lane, FigureTarget::All({{share, "Parasol"}}));
    });
  };
  add("Parasol, JOURNAL", wire::LoadRequest::WRITTEN, .8);
  add("Parasol, JOURNAL_SYNC", wire::LoadRequest::ON_DISK, .5);
  lineup.Add("Parasol, on two ps", [&] {
    return Enter(
        MakeMirroredContender("Parasol, on two ps", contents, settings.client),
        bytes, make_lane);
  });
  lineup.Add("Parasol, REPLICATE", [&] {
    return Enter(MakeReplicatedContender("Parasol, REPLICATE", contents,
                                         settings.client),
                 bytes, make_lane, FigureTarget::All({{.45, "Parasol"}}));
  });
  lineup.Add("Parasol, REPLICATE_JOURNAL", [&] {
    return Enter(
        MakeReplicatedContender("Parasol, REPLICATE_JOURNAL", contents,
                                settings.client, wire::LoadRequest::WRITTEN),
        bytes, make_lane);
  });
  return lineup.Measure();
}

}  // namespace

void RunJournal(const Settings& settings, const TakeComparison& take) {
  TakePushes("journal", settings, CompareJournals, take);
}

}  // namespace parasol
