#include "cli/validate.h"

#include <algorithm>
#include <istream>
#include <iterator>
#include <ostream>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "engine/policy_file.h"
#include "model/document_writer.h"
#include "model/spec_codec.h"
#include "model/utf8.h"

namespace muster::cli {
namespace {

constexpr std::size_t kShownColumns = 120;

struct Checked {
  std::string file;
  std::string_view kind = model::NameOf(model::SpecKind::kUnknown);
  bool valid = false;
  std::vector<model::Problem> problems;
  std::string text;
};

Result<std::string> Read(const std::string& file, std::istream& in) {
  if (file == "-") return ReadStream(in, model::kMaxDocumentBytes);
  return ReadFile(file, model::kMaxDocumentBytes);
}

// No other file has that key.
bool IsPolicyFile(std::string_view text) {
  model::Problems ignored;
  const auto documents = model::ParseDocuments(text, ignored);
  return !documents.empty() && documents.front().Find("policy") != nullptr;
}

Checked Check(const std::string& file, std::string text) {
  Checked out;
  out.file = file;
  model::Problems problems;
  if (IsPolicyFile(text)) {
    out.kind = "policy";
    (void)engine::DecodePolicyFile(text, problems);
  } else {
    auto decoded = model::DecodeSpec(text);
    out.kind = model::NameOf(decoded.spec.kind);
    problems = std::move(decoded.problems);
  }
  out.valid = !problems.HasErrors();
  out.problems = problems.Sorted();
  out.text = std::move(text);
  return out;
}

std::string_view LineOf(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

// Characters of the line as they are printed, each one column wide.
std::vector<std::string> Cells(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at < line.size();) {
    const auto length = model::CharacterLength(line.substr(at));
    const bool show = length > 0 && !model::IsControl(line.substr(at));
    cells.emplace_back(show ? line.substr(at, length) : line[at] == '\t' ? " " : "?");
    at += length > 0 ? length : 1;
  }
  return cells;
}

void PrintSource(std::string_view text, model::Mark mark, std::ostream& out) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the reader does not count it
  const auto cells = Cells(LineOf(text, mark.line));
  if (cells.empty()) return;
  const auto caret = static_cast<std::size_t>(std::max(mark.column, 1)) - 1;
  const std::size_t from = caret < kShownColumns ? 0 : caret - kShownColumns / 2;
  const auto to = std::min(cells.size(), from + kShownColumns);
  out << "    ";
  for (std::size_t i = from; i < to; ++i) out << cells[i];
  out << "\n    " << std::string(caret - from, ' ') << "^\n";
}

void PrintTable(const std::vector<Checked>& files, std::ostream& out) {
  for (const auto& file : files) {
    for (const auto& problem : file.problems) {
      if (problem.mark.line == 0) continue;  // not about the text: told on the other stream
      out << file.file << ':' << problem.mark.line << ':' << problem.mark.column << ": "
          << model::Describe(problem) << '\n';
      PrintSource(file.text, problem.mark, out);
    }
    if (file.valid) out << file.file << ": valid (" << file.kind << ")\n";
  }
}

void PrintJson(const std::vector<Checked>& files, std::ostream& out) {
  using model::Put;
  auto document = model::MapNode();
  auto& list = Put(document, "files", model::ListNode());
  for (const auto& file : files) {
    auto entry = model::MapNode();
    Put(entry, "file", model::TextNode(file.file));
    Put(entry, "kind", model::TextNode(file.kind));
    Put(entry, "valid", model::BoolNode(file.valid));
    auto& problems = Put(entry, "problems", model::ListNode());
    for (const auto& problem : file.problems) {
      auto item = model::MapNode();
      Put(item, "line", model::NumberNode(problem.mark.line));
      Put(item, "column", model::NumberNode(problem.mark.column));
      const bool is_error = problem.severity == model::Severity::kError;
      Put(item, "severity", model::TextNode(is_error ? "error" : "warning"));
      Put(item, "message", model::TextNode(problem.message));
      Put(item, "allowed", model::TextNode(problem.allowed));
      problems.children.push_back(std::move(item));
    }
    list.children.push_back(std::move(entry));
  }
  out << model::WriteJson(document);
}

}  // namespace

int RunValidate(const std::vector<std::string>& files, ValidateFormat format,
                ValidateStreams streams) {
  std::vector<Checked> checked;
  int status = 0;
  for (const auto& file : files) {
    auto text = Read(file, streams.in);
    if (text) {
      checked.push_back(Check(file, std::move(*text)));
      if (!checked.back().valid && status == 0) status = ExitStatus(ErrorCode::kInvalid);
      continue;
    }
    // A file that cannot be read is worse than one that can and is wrong.
    if (status != ExitStatus(ErrorCode::kNotFound)) status = ExitStatus(text.error().code);
    streams.err << "muster: " << Describe(text.error()) << '\n';
    Checked unread;
    unread.file = file;
    unread.problems.push_back({{0, 0}, model::Severity::kError, text.error().message, {}});
    checked.push_back(std::move(unread));
  }
  if (format == ValidateFormat::kJson) {
    PrintJson(checked, streams.out);
  } else {
    PrintTable(checked, streams.out);
  }
  return status;
}

}  // namespace muster::cli
