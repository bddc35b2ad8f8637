// Complaint: what is said of a command line that cannot be understood.
//
// In our words instead of the parser's: what was typed, in the order in which it was typed, the
// verb or flag that it is nearest to, and the help that is meant. Needs the parser as it stands
// after it has failed. Assumes that every word may hold anything, so all of it is cleaned.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
class Error;
}  // namespace CLI

namespace muster::cli {

// "no verb "cancl"; did you mean cancel?": of a word that should be a verb right below `app`;
// `path` is what leads there, as "muster queue".
std::string NoVerb(const CLI::App& app, const std::string& path, const std::string& word);
// The first word that should be a verb and is not; empty: there is none.
std::string UnknownVerb(const CLI::App& app, const std::vector<std::string>& words);
// A line, or several, with their ends.
std::string Complaint(const CLI::App* app, const CLI::Error& error);

}  // namespace muster::cli
