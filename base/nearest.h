#pragma once
// What somebody may have meant by a word that is not known.
#include <string>
#include <vector>

namespace zeroplan {

size_t edit_distance(const std::string& a, const std::string& b);  // Levenshtein
// The known word that is nearest, empty where half of the word or more would have to change.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace zeroplan
