// The project's documents: every link leads to a file and to a heading that are
// there, every page of docs/ is found from README.md in two steps, and the
// newest release of CHANGELOG.md is the version of programs and packages.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A document's links, as they are written, and the anchors of its headings.
struct Document {
  std::vector<std::string> links;
  std::vector<std::string> anchors;
};

// Returns the anchor that GitHub gives to a heading: "a-b" of "## `A`, b".
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const unsigned char c : heading) {
    if (c == ' ') anchor += '-';
    // Bytes of UTF-8 above ASCII are letters mostly.
    if (std::isalnum(c) || c == '-' || c == '_' || c >= 0x80) {
      anchor += static_cast<char>(std::tolower(c));
    }
  }
  return anchor;
}

// Reads Markdown. What is in a block of code is neither a link nor a heading.
Document Parse(std::istream& text) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  static const std::regex code("`[^`]*`");
  static const std::regex heading("^#+ +(.*)$");
  Document document;
  bool in_code = false;
  for (std::string line; std::getline(text, line);) {
    if (absl::StartsWith(line, "```")) in_code = !in_code;
    if (in_code) continue;
    std::smatch found;
    if (std::regex_match(line, found, heading)) {
      document.anchors.push_back(AnchorOf(found[1]));
    }
    line = std::regex_replace(line, code, "");
    for (std::sregex_iterator i(line.begin(), line.end(), link), end; i != end;
         ++i) {
      document.links.push_back((*i)[1]);
    }
  }
  return document;
}

bool IsOutside(const std::string& link) {
  return absl::StrContains(link, "://") || absl::StartsWith(link, "mailto:");
}

// Returns the path that a link of the page `from` names, without its anchor. A
// link to a folder that has a README.md names that.
fs::path TargetOf(const fs::path& from, const std::string& link) {
  const std::string path = link.substr(0, link.find('#'));
  if (path.empty()) return from;
  fs::path target = (from.parent_path() / path).lexically_normal();
  if (fs::exists(target / "README.md")) target /= "README.md";
  return target;
}

// Bazel shows a test the tree through links: the root is what one points to.
fs::path Root() { return fs::canonical("WORKSPACE").parent_path(); }

using Pages = std::map<fs::path, Document>;

// Reads the pages below a folder.
Pages PagesBelow(const fs::path& root) {
  Pages pages;
  const auto add = [&pages](const fs::path& path) {
    if (path.extension() != ".md") return;
    std::ifstream text(path);
    pages.emplace(path, Parse(text));
  };
  for (const auto& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename();
    add(top.path());
    if (top.is_symlink() || !top.is_directory() || name.front() == '.') {
      continue;  // bazel-bin, .git
    }
    for (const auto& entry : fs::recursive_directory_iterator(top.path())) {
      add(entry.path());
    }
  }
  return pages;
}

// The pages of the project.
const Pages& Documents() {
  static const auto* const documents = new Pages(PagesBelow(Root()));
  return *documents;
}

// The links of all pages that lead nowhere, and the number of those within.
struct Links {
  std::vector<std::string> broken;
  int number = 0;
};

Links Follow(const Pages& pages, const fs::path& root) {
  Links links;
  for (const auto& [path, document] : pages) {
    for (const std::string& link : document.links) {
      if (IsOutside(link)) continue;
      ++links.number;
      const fs::path target = TargetOf(path, link);
      const std::string place =
          absl::StrCat(fs::relative(path, root).string(), ": ", link);
      if (!fs::exists(target)) {
        links.broken.push_back(absl::StrCat(place, ": no such file"));
        continue;
      }
      const auto page = pages.find(target);
      const size_t anchor = link.find('#');
      if (anchor == std::string::npos || page == pages.end()) continue;
      const std::vector<std::string>& anchors = page->second.anchors;
      if (std::find(anchors.begin(), anchors.end(), link.substr(anchor + 1)) ==
          anchors.end()) {
        links.broken.push_back(absl::StrCat(place, ": no such heading"));
      }
    }
  }
  return links;
}

TEST(DocumentsTest, LinksAndAnchorsAreFound) {
  std::istringstream text(
      "# What `--set` does, and Why\n"
      "See [a](b.md#c), ![p](d.png) and `[no](link)`.\n"
      "```sh\n"
      "# no heading [no](link)\n"
      "```\n"
      "## Épochs\n");
  const Document document = Parse(text);
  EXPECT_THAT(document.links, ElementsAre("b.md#c", "d.png"));
  EXPECT_THAT(document.anchors,
              ElementsAre("what---set-does-and-why", "Épochs"));
}

TEST(DocumentsTest, EveryLinkLeadsToAFileAndAHeading) {
  const Links links = Follow(Documents(), Root());
  EXPECT_THAT(links.broken, IsEmpty());
  EXPECT_THAT(links.number, Gt(300));
}

TEST(DocumentsTest, LinksOfInstalledPagesLeadToWhatIsInstalled) {
  const fs::path prefix = fs::path(testing::TempDir()) / "installed";
  fs::remove_all(prefix);
  const std::string command =
      absl::StrCat("'", (Root() / "deploy/install_documents").string(), "' '",
                   prefix.string(), "'");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const fs::path pages = prefix / "share/doc/parasol";
  const Links links = Follow(PagesBelow(pages), pages);
  EXPECT_THAT(links.broken, IsEmpty());
  EXPECT_THAT(links.number, Gt(300));
  for (const char* file :
       {"doc/parasol/docs/images/tensorboard.png",
        "doc/parasol/docs/examples/mnist_mlp.textproto",
        "doc/parasol/docs/examples/custom_model/Makefile",
        "parasol/k8s/base/kustomization.yaml", "parasol/k8s/run_task",
        "parasol/machines/systemd/parasol-ps@.service",
        "parasol/prometheus/parasol.rules.yml", "parasol/plot_training.py"}) {
    EXPECT_TRUE(fs::is_regular_file(prefix / "share" / file)) << file;
  }
}

// Returns the titles of a page's headings of the second level.
std::vector<std::string> Sections(const fs::path& path) {
  std::ifstream page(path);
  std::vector<std::string> titles;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) titles.push_back(line.substr(3));
  }
  return titles;
}

TEST(DocumentsTest, TheNewestReleaseIsTheVersionOfProgramsAndPackages) {
  const std::vector<std::string> releases = Sections(Root() / "CHANGELOG.md");
  ASSERT_THAT(releases, SizeIs(Gt(1)));
  EXPECT_EQ(releases[0], "Unreleased");
  EXPECT_THAT(releases[1], StartsWith(absl::StrCat(kVersion, " (")));

  const fs::path out = fs::path(testing::TempDir()) / "version";
  const std::string command =
      absl::StrCat("'", (Root() / "deploy/package").string(), "' --version >'",
                   out.string(), "'");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::string version;
  std::getline(std::ifstream(out), version);
  // Behind a release it also has a date and a commit.
  EXPECT_EQ(version.substr(0, version.find('+')), kVersion);
}

TEST(DocumentsTest, EveryPageIsFoundFromTheReadmeInTwoSteps) {
  const fs::path readme = Root() / "README.md";
  std::set<fs::path> found = {readme};
  for (int step = 0; step < 2; ++step) {
    std::set<fs::path> next = found;
    for (const fs::path& path : found) {
      const auto page = Documents().find(path);
      if (page == Documents().end()) continue;
      for (const std::string& link : page->second.links) {
        if (!IsOutside(link)) next.insert(TargetOf(path, link));
      }
    }
    found = next;
  }
  std::vector<std::string> lost;
  int pages = 0;
  for (const auto& [path, document] : Documents()) {
    ++pages;
    if (!found.contains(path)) lost.push_back(fs::relative(path, Root()));
  }
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_THAT(pages, Gt(20));
}

}  // namespace
}  // namespace parasol
