#include "tests/benchmark/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

// Share of the cores that other programs may take without a mark.
constexpr double kMaxForeign = .1;

FigureOf FiguresOf(const EntrantComparison& comparison) {
  return [&comparison](const std::string& contender) -> std::optional<double> {
    for (const Measurement& other : comparison.measurements) {
      if (other.contender == contender) return other.figure;
    }
    return std::nullopt;
  };
}

std::string Ratio(const EntrantComparison& comparison,
                  const Measurement& measurement,
                  const std::string& contender) {
  const std::optional<double> other = FiguresOf(comparison)(contender);
  if (!other.has_value() || *other == 0) return "";
  return absl::StrFormat("%.2f", measurement.figure / *other);
}

std::string Microseconds(absl::Duration duration) {
  if (duration == absl::ZeroDuration()) return "";
  return absl::StrFormat("%.0f", absl::ToDoubleMicroseconds(duration));
}

// "12 %", with "!" if other programs took so much that the figure says little.
std::string Foreign(const Measurement& measurement) {
  if (measurement.cpu == 0) return "";
  return absl::StrFormat("%.0f %%%s", 100 * measurement.foreign_share,
                         measurement.foreign_share > kMaxForeign ? " !" : "");
}

// "120 > 130 (150)": MiB before, after and at most.
std::string Memory(const Measurement& measurement) {
  if (!measurement.before.has_value()) return "";
  return absl::StrFormat("%d > %d (%d)", measurement.before->resident >> 20,
                         measurement.after->resident >> 20,
                         measurement.after->peak >> 20);
}

std::string Verdict(const EntrantComparison& comparison,
                    const Measurement& measurement) {
  const std::optional<bool> met =
      IsMet(measurement.target, measurement.figure, FiguresOf(comparison));
  if (!met.has_value()) return "";
  return absl::StrCat(*met ? "met: " : "NOT MET: ",
                      Describe(measurement.target, comparison.unit.scale));
}

nlohmann::json ToJson(const EntrantComparison& comparison,
                      const Measurement& m) {
  nlohmann::json json = {{"contender", m.contender},
                         {"figure", m.figure},
                         {"p50_seconds", absl::ToDoubleSeconds(m.p50)},
                         {"p99_seconds", absl::ToDoubleSeconds(m.p99)},
                         {"cpu_seconds", m.cpu},
                         {"foreign_cpu_share", m.foreign_share}};
  for (const Measurement& other : comparison.measurements) {
    if (other.figure == 0) continue;
    json["over"][other.contender] = m.figure / other.figure;
  }
  if (m.before.has_value()) {
    json["server_bytes"] = {{"before", m.before->resident},
                            {"after", m.after->resident},
                            {"peak", m.after->peak}};
  }
  const std::optional<bool> met =
      IsMet(m.target, m.figure, FiguresOf(comparison));
  if (met.has_value()) {
    json["target"] = Describe(m.target, /*scale=*/1);
    json["met"] = *met;
  }
  return json;
}

constexpr char kFormat[] =
    "%-16s %-24s %8s %-8s %8s %8s %7s %7s %7s %6s  %-20s %s\n";

}  // namespace

std::string TableHeader(const Machine& machine) {
  return absl::StrFormat("%s\n", ToLine(machine)) +
         absl::StrFormat(kFormat, "workload", "contender", "figure", "",
                         "p50 us", "p99 us", "/ TCP", "/ plain", "CPU s",
                         "others", "server MiB (peak)", "must reach");
}

std::string ToTable(const EntrantComparison& comparison) {
  std::string table;
  for (const Measurement& m : comparison.measurements) {
    absl::StrAppendFormat(
        &table, kFormat, comparison.workload, m.contender,
        absl::StrFormat("%.2f", m.figure * comparison.unit.scale),
        comparison.unit.name, Microseconds(m.p50), Microseconds(m.p99),
        Ratio(comparison, m, "raw TCP"), Ratio(comparison, m, "plain gRPC"),
        m.cpu == 0 ? ""
                   : absl::StrFormat("%.2f", m.cpu / comparison.unit.scale),
        Foreign(m), Memory(m), Verdict(comparison, m));
  }
  return table;
}

std::string ToJson(const Machine& machine,
                   const std::vector<EntrantComparison>& comparisons) {
  nlohmann::json json;
  json["machine"] = {{"processor", machine.processor},
                     {"cores", machine.cores},
                     {"congestion_control", machine.congestion_control}};
  for (const EntrantComparison& comparison : comparisons) {
    nlohmann::json& entry = json["comparisons"].emplace_back();
    entry["workload"] = comparison.workload;
    entry["unit"] = comparison.unit.name;
    entry["unit_scale"] = comparison.unit.scale;
    for (const Measurement& measurement : comparison.measurements) {
      entry["measurements"].push_back(ToJson(comparison, measurement));
    }
  }
  return json.dump(2) + "\n";
}

}  // namespace parasol
