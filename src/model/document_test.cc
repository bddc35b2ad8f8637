#include "model/document.h"

#include <gtest/gtest.h>

#include <string>

#include "model/document_writer.h"

namespace muster::model {
namespace {

struct Parsed {
  std::vector<DocNode> documents;
  std::vector<Problem> problems;
};

Parsed Parse(std::string_view text) {
  Problems problems;
  auto documents = ParseDocuments(text, problems);
  return {std::move(documents), problems.Sorted()};
}

std::string FirstProblem(std::string_view text) {
  const auto parsed = Parse(text);
  if (parsed.problems.empty()) return "none";
  const auto& problem = parsed.problems[0];
  return std::to_string(problem.mark.line) + ":" + std::to_string(problem.mark.column) + " " +
         problem.message;
}

std::string Repeat(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Document, KeepsThePlaceOfKeysAndValuesInYamlAndJson) {
  for (const std::string_view text :
       {"a: 1\nb:\n  c: [x, y]\n", "{\"a\":1,\n\"b\":\n{ \"c\":[\"x\",\"y\"]}}"}) {
    const auto parsed = Parse(text);
    ASSERT_EQ(parsed.documents.size(), 1U) << text;
    const auto* b = parsed.documents[0].Find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->key_mark.line, 2);
    EXPECT_EQ(b->key_mark.column, 1);
    const auto* c = b->Find("c");
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->key_mark.line, 3);
    EXPECT_EQ(c->key_mark.column, 3);
    EXPECT_EQ(c->children.size(), 2U);
  }
}

TEST(Document, CountsColumnsInCharactersNotBytes) {
  EXPECT_EQ(Parse("é: {ä: 1, x: 2}").documents[0].children[0].children[1].key_mark.column, 11);
  EXPECT_EQ(Parse("{\"é\": 1, \"x\": 2}").documents[0].children[1].key_mark.column, 10);
}

TEST(Document, ReadsTheJsonThatTheYamlLibraryRefuses) {
  const auto parsed = Parse(R"({"a": "\ud83d\ude00\/\u00e9"})");
  ASSERT_EQ(parsed.documents.size(), 1U);
  EXPECT_EQ(parsed.documents[0].children[0].text, "\xF0\x9F\x98\x80/\xC3\xA9");
}

TEST(Document, TellsQuotedTextFromPlainScalars) {
  const auto parsed = Parse("a: '1'\nb: 1\nc: !!str 1\nd:\n");
  const auto& map = parsed.documents[0];
  EXPECT_TRUE(map.Find("a")->quoted);
  EXPECT_FALSE(map.Find("b")->quoted);
  EXPECT_TRUE(map.Find("c")->quoted);
  EXPECT_EQ(map.Find("d")->kind, DocKind::kNull);
  EXPECT_EQ(map.Find("d")->mark.line, 4);
}

TEST(Document, ExpandsAliasesAndMergesWithOwnKeysWinning) {
  const auto parsed = Parse("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nlist: [*b]\n");
  ASSERT_TRUE(parsed.problems.empty());
  const auto* more = parsed.documents[0].Find("more");
  EXPECT_EQ(more->Find("x")->text, "1");
  EXPECT_EQ(more->Find("y")->text, "3");
  EXPECT_EQ(parsed.documents[0].Find("list")->children[0].Find("y")->text, "2");
}

TEST(Document, ReportsDuplicateKeysAndKeepsTheFirst) {
  const auto parsed = Parse("a: 1\nb: 2\na: 3\n");
  ASSERT_EQ(parsed.problems.size(), 1U);
  EXPECT_EQ(parsed.problems[0].mark, (Mark{3, 1}));
  EXPECT_EQ(parsed.documents[0].Find("a")->text, "1");
}

TEST(Document, ReadsSeveralDocumentsAndLeavesEmptyOnesOut) {
  EXPECT_EQ(Parse("a: 1\n---\n---\nb: 2\n").documents.size(), 2U);
  EXPECT_TRUE(Parse("").documents.empty());
  EXPECT_TRUE(Parse("# nothing\n").documents.empty());
}

TEST(Document, SyntaxErrorsPointAtTheirPlace) {
  EXPECT_EQ(FirstProblem("a: 1\nb: [1,\n  2"), "2:4 the bracket that opens here is never closed");
  EXPECT_EQ(FirstProblem("a:\n\tb: 1\n"), "2:3 this is neither YAML nor JSON: illegal map value");
  EXPECT_EQ(FirstProblem("a: *b"),
            "1:4 this is neither YAML nor JSON: the referenced anchor is not defined");
  EXPECT_EQ(FirstProblem("a: &a [*a]"), "1:8 an alias cannot stand inside the value that it names");
  EXPECT_EQ(FirstProblem("a: !x 1"), "1:4 the tag `!x` is not supported");
  EXPECT_EQ(FirstProblem("? [a]\n: b"), "1:3 a key must be text, not a list");
  EXPECT_EQ(FirstProblem("<<: 1\na: 2"), "1:1 `<<` merges maps only");
}

TEST(Document, RefusesWhatIsNotText) {
  EXPECT_EQ(FirstProblem("a: \xFF"), "1:4 the file is not valid UTF-8 here");
  EXPECT_EQ(FirstProblem("a: \xC0\x80"), "1:4 the file is not valid UTF-8 here");
  EXPECT_EQ(FirstProblem("a: \xED\xA0\x80"), "1:4 the file is not valid UTF-8 here");
  EXPECT_EQ(FirstProblem(std::string_view("ab\0", 3)),
            "1:3 the file holds a control character here");
  EXPECT_EQ(FirstProblem("a\n\x1b[31m"), "2:1 the file holds a control character here");
  EXPECT_EQ(FirstProblem("\xFE\xFF"), "1:1 the file is not valid UTF-8 here");
  EXPECT_EQ(FirstProblem("\xEF\xBB\xBF"
                         "a: 1"),
            "none");
}

TEST(Document, BoundsDepthInEveryForm) {
  const auto deep = "the file is nested too deeply";
  for (const std::string_view part : {"[", "{a: ", "- ", "{\"a\":["}) {
    EXPECT_NE(FirstProblem(Repeat(part, 100'000)).find(deep), std::string::npos) << part;
  }
  std::string aliases = "a0: &a0 x\n";
  for (int i = 1; i < 100; ++i) {
    aliases += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
               std::to_string(i - 1) + "]\n";
  }
  EXPECT_NE(FirstProblem(aliases).find(deep), std::string::npos);
}

TEST(Document, StopsAnAliasBombEarly) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_NE(FirstProblem(bomb).find("too many values"), std::string::npos);
  std::string long_text = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) long_text += "*a, ";
  EXPECT_NE(FirstProblem(long_text + "]").find("too many values"), std::string::npos);
}

TEST(Document, BoundsSizeValuesAndDocuments) {
  EXPECT_NE(FirstProblem(std::string(kMaxDocumentBytes + 1, ' ')).find("too large"),
            std::string::npos);
  EXPECT_NE(FirstProblem("[" + Repeat("1,", kMaxDocumentNodes + 1) + "1]").find("too many values"),
            std::string::npos);
  EXPECT_NE(FirstProblem(Repeat("---\na\n", 1'100)).find("too many documents"), std::string::npos);
}

TEST(Document, WritesTextsSoThatTheyComeBack) {
  auto map = MapNode();
  auto& list = Put(map, "texts", ListNode());
  const std::vector<std::string> texts = {
      "",           "1",  "true",   "~",    "a: b",        "- c",          "#",
      "two\nlines", "\t", "\"'\\",  "\x01", "\xC2\x85",    "\xE2\x80\xA8", "é",
      " padded ",   "no", "0-99%8", "*a",   "\xEF\xBB\xBF"};
  for (const auto& text : texts) list.children.push_back(TextNode(text));
  for (const auto format : {TextFormat::kYaml, TextFormat::kJson}) {
    const auto parsed = Parse(WriteDocument(map, format));
    ASSERT_TRUE(parsed.problems.empty()) << WriteDocument(map, format);
    const auto* read = parsed.documents[0].Find("texts");
    ASSERT_EQ(read->children.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(read->children[i].text, texts[i]);
  }
}

TEST(Problems, AreBoundedSortedAndUnique) {
  Problems problems;
  problems.Error({2, 1}, "b");
  problems.Error({1, 1}, "a");
  problems.Error({2, 1}, "b");
  ASSERT_EQ(problems.Sorted().size(), 2U);
  EXPECT_EQ(problems.Sorted()[0].message, "a");
  for (int i = 0; i < 1'000; ++i) problems.Error({i + 3, 1}, "c");
  EXPECT_EQ(problems.Sorted().size(), Problems::kMost + 1);
  EXPECT_EQ(problems.Sorted().back().message, "and 902 more, not shown");
}

TEST(Document, AJsonLineIsTheSameDocumentWithoutASpaceOrABreak) {
  const auto parsed = Parse(R"({"a": [1, "x y\nz", {}], "b": {"c": null, "d": true}, "e": []})");
  EXPECT_EQ(WriteJsonLine(parsed.documents.at(0)),
            R"({"a":[1,"x y\nz",{}],"b":{"c":null,"d":true},"e":[]})");
}

TEST(Problems, NearestFindsSlipsAndNotStrangers) {
  const std::vector<std::string_view> words = {"priority", "preemptible", "gpus"};
  EXPECT_EQ(Nearest("prioritty", words), "priority");
  EXPECT_EQ(Nearest("gpsu", words), "gpus");
  EXPECT_EQ(Nearest("Gpus", words), "gpus");
  EXPECT_EQ(Nearest("fpga", words), "");
  EXPECT_EQ(Nearest("x", words), "");
  const std::vector<std::string_view> verbs = {"run", "ps"};
  EXPECT_EQ(Nearest("rnu", verbs), "run");
  EXPECT_EQ(Nearest("tune", verbs), "");
  EXPECT_EQ(Nearest("ls", verbs), "");
}

}  // namespace
}  // namespace muster::model
