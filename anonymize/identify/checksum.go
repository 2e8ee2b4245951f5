package identify

import "strings"

// Checksums tell a number that some office has issued from one that happens to
// have its length: nine or more of ten random ones fail.

// digitsOf are the digits of a text that has, beside them, only characters of
// between; nil if it has others.
func digitsOf(text, between string) []int {
	var out []int
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			out = append(out, int(r-'0'))
		case !strings.ContainsRune(between, r):
			return nil
		}
	}
	return out
}

// luhn is the check of ISO/IEC 7812-1, Annex B.
func luhn(digits []int) bool {
	sum := 0
	for i, d := range digits {
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return len(digits) > 1 && sum%10 == 0
}

// weighed sums digits by weights, as far as these go.
func weighed(digits []int, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * digits[i]
	}
	return sum
}

// remainder reads digits as one decimal number.
func remainder(digits []int, modulus int) (rest int) {
	for _, d := range digits {
		rest = (10*rest + d) % modulus
	}
	return rest
}

func cardNumber(text string) bool {
	d := digitsOf(text, " -")
	return len(d) >= 13 && len(d) <= 19 && d[0] >= 3 && d[0] <= 6 && luhn(d)
}

// iban checks ISO 13616: letters count from 10, the first four characters last.
func iban(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	if len(text) < 15 || len(text) > 34 || text[0] < 'A' || text[0] > 'Z' {
		return false
	}
	var d []int
	for _, r := range text[4:] + text[:4] {
		switch {
		case r >= '0' && r <= '9':
			d = append(d, int(r-'0'))
		case r >= 'A' && r <= 'Z':
			d = append(d, int(r-'A'+10)/10, int(r-'A'+10)%10)
		default:
			return false
		}
	}
	return remainder(d, 97) == 1
}

// nhsNumber is that of England and Wales: 10 digits, modulo 11.
func nhsNumber(text string) bool {
	d := digitsOf(text, " -")
	if len(d) != 10 {
		return false
	}
	check := 11 - weighed(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return check%11 == d[9] && check != 10
}

// dni is Spain's: 8 digits, or X, Y, Z and 7 for foreigners, and a letter.
func dni(text string) bool {
	if len(text) != 9 {
		return false
	}
	number := strings.NewReplacer("X", "0", "Y", "1", "Z", "2").Replace(text[:1]) + text[1:8]
	d := digitsOf(number, "")
	return len(d) == 8 && "TRWAGMYFPDXBNJZSQVHLCKE"[remainder(d, 23)] == text[8]
}

// nir is France's number of social security: 13 digits and 97 less the rest.
func nir(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	if len(text) != 15 || (text[0] != '1' && text[0] != '2') {
		return false
	}
	d := digitsOf(text, "")
	return len(d) == 15 && 97-remainder(d[:13], 97) == 10*d[13]+d[14]
}

// taxID is Germany's: 11 digits, ISO/IEC 7064 MOD 11,10.
func taxID(text string) bool {
	d := digitsOf(text, " ")
	if len(d) != 11 || d[0] == 0 {
		return false
	}
	product := 10
	for _, digit := range d[:10] {
		sum := (digit + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = 2 * sum % 11
	}
	return (11-product)%10 == d[10]
}

// bsn is the Netherlands' number of citizens: 9 digits, the test of eleven.
func bsn(text string) bool {
	d := digitsOf(text, ".")
	return len(d) == 9 && weighed(d, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0
}

// pesel is Poland's: 11 digits that start with a day of birth.
func pesel(text string) bool {
	d := digitsOf(text, "")
	return len(d) == 11 && (weighed(d, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)+d[10])%10 == 0
}

// cpf is Brazil's: 9 digits and two checks modulo 11.
func cpf(text string) bool {
	d := digitsOf(text, ".-")
	if len(d) != 11 {
		return false
	}
	first := weighed(d, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	second := weighed(d, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return first == d[9] && second == d[10]
}

// personnummer is Sweden's: a day of birth, three digits, Luhn.
func personnummer(text string) bool {
	d := digitsOf(text, "-+")
	if len(d) == 12 {
		d = d[2:]
	}
	return len(d) == 10 && d[2] <= 1 && luhn(d)
}

// socialInsurance is Canada's: 9 digits, Luhn.
func socialInsurance(text string) bool {
	d := digitsOf(text, " -")
	return len(d) == 9 && luhn(d)
}

// loinc is a code of laboratory observations: digits, a hyphen, Luhn.
func loinc(text string) bool {
	d := digitsOf(text, "-")
	return len(d) >= 3 && len(d) <= 7 && strings.IndexByte(text, '-') == len(text)-2 && luhn(d)
}

// Tables of Verhoeff's check, of the dihedral group of order 10.
var (
	verhoeffProduct = [10]string{
		"0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
		"5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
	}
	verhoeffPermuted = [8]string{
		"0123456789", "1576283094", "5803796142", "8916043527",
		"9453126870", "4286573901", "2793806415", "7046913258",
	}
)

func verhoeff(digits []int) bool {
	check := 0
	for i := range digits {
		d := digits[len(digits)-1-i]
		check = int(verhoeffProduct[check][verhoeffPermuted[i%8][d]-'0'] - '0')
	}
	return check == 0
}

// snomed is a concept of SNOMED CT: 6 to 18 digits, Verhoeff, of which the
// second and third last say that it is a concept.
func snomed(text string) bool {
	d := digitsOf(text, "")
	n := len(d)
	return n >= 6 && n <= 18 && (d[n-3] == 0 || d[n-3] == 1) && d[n-2] == 0 && verhoeff(d)
}

// aadhaar is India's: 12 digits, the first above 1, Verhoeff.
func aadhaar(text string) bool {
	d := digitsOf(text, " ")
	return len(d) == 12 && d[0] > 1 && verhoeff(d)
}
