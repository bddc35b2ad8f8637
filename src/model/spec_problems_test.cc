// The mistakes that people make, each with the exact lines they get to read; the cases are the text
// file, so that adding one needs no C++.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/tree.h"
#include "model/spec_codec.h"

namespace muster::model {
namespace {

struct BadFile {
  std::string name;
  std::string text;
  std::string problems;
};

std::vector<BadFile> ReadBadFiles() {
  std::ifstream in(SourceTree() + "/tests/specs/bad_files.txt");
  std::vector<BadFile> files;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      files.push_back({line.substr(3), "", ""});
    } else if (line.starts_with("!! ")) {
      files.back().problems += line.substr(3) + "\n";
    } else if (!files.empty() && !line.empty()) {
      files.back().text += line + "\n";
    }
  }
  return files;
}

TEST(SpecProblems, EachBadFileGetsExactlyItsLines) {
  const auto files = ReadBadFiles();
  ASSERT_GE(files.size(), 40U);
  for (const auto& file : files) {
    std::string lines;
    for (const auto& problem : DecodeSpec(file.text).problems.Sorted()) {
      lines += std::to_string(problem.mark.line) + ":" + std::to_string(problem.mark.column) +
               ": " + Describe(problem) + "\n";
    }
    EXPECT_EQ(lines, file.problems) << file.name;
  }
}

}  // namespace
}  // namespace muster::model
