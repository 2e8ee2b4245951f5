package identify

import "strings"

// A list of places: "region / part of it:", and lines of places below; a place is
// its name, its codes, if there are any, and other names, separated by bars.
// Countries are grouped as by the United Nations (M49), with ISO 3166 codes;
// states as by the US Census Bureau.
const countryList = `
Africa / Northern Africa:
  Algeria|DZ|DZA; Egypt|EG|EGY; Libya|LY|LBY; Morocco|MA|MAR; Sudan|SD|SDN; Tunisia|TN|TUN;
  Western Sahara|EH|ESH
Africa / Eastern Africa:
  Burundi|BI|BDI; Comoros|KM|COM; Djibouti|DJ|DJI; Eritrea|ER|ERI; Ethiopia|ET|ETH; Kenya|KE|KEN;
  Madagascar|MG|MDG; Malawi|MW|MWI; Mauritius|MU|MUS; Mozambique|MZ|MOZ; Réunion|RE|REU|Reunion;
  Rwanda|RW|RWA; Seychelles|SC|SYC; Somalia|SO|SOM; South Sudan|SS|SSD; Tanzania|TZ|TZA;
  Uganda|UG|UGA; Zambia|ZM|ZMB; Zimbabwe|ZW|ZWE
Africa / Middle Africa:
  Angola|AO|AGO; Cameroon|CM|CMR; Central African Republic|CF|CAF; Chad|TD|TCD; Congo|CG|COG;
  DR Congo|CD|COD|Democratic Republic of the Congo|Zaire; Equatorial Guinea|GQ|GNQ; Gabon|GA|GAB;
  Sao Tome and Principe|ST|STP
Africa / Southern Africa:
  Botswana|BW|BWA; Eswatini|SZ|SWZ|Swaziland; Lesotho|LS|LSO; Namibia|NA|NAM; South Africa|ZA|ZAF
Africa / Western Africa:
  Benin|BJ|BEN; Burkina Faso|BF|BFA; Cabo Verde|CV|CPV|Cape Verde;
  Côte d'Ivoire|CI|CIV|Ivory Coast|Cote d'Ivoire; Gambia|GM|GMB; Ghana|GH|GHA; Guinea|GN|GIN;
  Guinea-Bissau|GW|GNB; Liberia|LR|LBR; Mali|ML|MLI; Mauritania|MR|MRT; Niger|NE|NER;
  Nigeria|NG|NGA; Senegal|SN|SEN; Sierra Leone|SL|SLE; Togo|TG|TGO
Americas / Caribbean:
  Antigua and Barbuda|AG|ATG; Aruba|AW|ABW; Bahamas|BS|BHS; Barbados|BB|BRB; Cuba|CU|CUB;
  Curaçao|CW|CUW|Curacao; Dominica|DM|DMA; Dominican Republic|DO|DOM; Grenada|GD|GRD;
  Guadeloupe|GP|GLP; Haiti|HT|HTI; Jamaica|JM|JAM; Martinique|MQ|MTQ; Puerto Rico|PR|PRI;
  Saint Kitts and Nevis|KN|KNA; Saint Lucia|LC|LCA; Saint Vincent and the Grenadines|VC|VCT;
  Trinidad and Tobago|TT|TTO|Trinidad & Tobago|Trinidad; US Virgin Islands|VI|VIR
Americas / Central America:
  Belize|BZ|BLZ; Costa Rica|CR|CRI; El Salvador|SV|SLV; Guatemala|GT|GTM; Honduras|HN|HND;
  Mexico|MX|MEX; Nicaragua|NI|NIC; Panama|PA|PAN
Americas / Northern America:
  Bermuda|BM|BMU; Canada|CA|CAN; Greenland|GL|GRL;
  United States|US|USA|United States of America|America
Americas / South America:
  Argentina|AR|ARG; Bolivia|BO|BOL; Brazil|BR|BRA; Chile|CL|CHL; Colombia|CO|COL; Ecuador|EC|ECU;
  French Guiana|GF|GUF; Guyana|GY|GUY; Paraguay|PY|PRY; Peru|PE|PER; Suriname|SR|SUR;
  Uruguay|UY|URY; Venezuela|VE|VEN
Asia / Central Asia:
  Kazakhstan|KZ|KAZ; Kyrgyzstan|KG|KGZ; Tajikistan|TJ|TJK; Turkmenistan|TM|TKM; Uzbekistan|UZ|UZB
Asia / Eastern Asia:
  China|CN|CHN; Hong Kong|HK|HKG; Japan|JP|JPN; Macao|MO|MAC|Macau; Mongolia|MN|MNG;
  North Korea|KP|PRK; South Korea|KR|KOR|Korea|Republic of Korea; Taiwan|TW|TWN
Asia / South-eastern Asia:
  Brunei|BN|BRN; Cambodia|KH|KHM; Indonesia|ID|IDN; Laos|LA|LAO; Malaysia|MY|MYS;
  Myanmar|MM|MMR|Burma; Philippines|PH|PHL; Singapore|SG|SGP; Thailand|TH|THA;
  Timor-Leste|TL|TLS|East Timor; Vietnam|VN|VNM|Viet Nam
Asia / Southern Asia:
  Afghanistan|AF|AFG; Bangladesh|BD|BGD; Bhutan|BT|BTN; India|IN|IND; Iran|IR|IRN;
  Maldives|MV|MDV; Nepal|NP|NPL; Pakistan|PK|PAK; Sri Lanka|LK|LKA
Asia / Western Asia:
  Armenia|AM|ARM; Azerbaijan|AZ|AZE; Bahrain|BH|BHR; Cyprus|CY|CYP; Georgia|GE|GEO; Iraq|IQ|IRQ;
  Israel|IL|ISR; Jordan|JO|JOR; Kuwait|KW|KWT; Lebanon|LB|LBN; Oman|OM|OMN; Palestine|PS|PSE;
  Qatar|QA|QAT; Saudi Arabia|SA|SAU; Syria|SY|SYR; Turkey|TR|TUR|Türkiye;
  United Arab Emirates|AE|ARE|UAE; Yemen|YE|YEM
Europe / Eastern Europe:
  Belarus|BY|BLR; Bulgaria|BG|BGR; Czechia|CZ|CZE|Czech Republic|Czechoslovakia; Hungary|HU|HUN;
  Moldova|MD|MDA; Poland|PL|POL; Romania|RO|ROU; Russia|RU|RUS|Russian Federation|USSR;
  Slovakia|SK|SVK; Ukraine|UA|UKR
Europe / Northern Europe:
  Denmark|DK|DNK; Estonia|EE|EST; Faroe Islands|FO|FRO; Finland|FI|FIN; Iceland|IS|ISL;
  Ireland|IE|IRL; Latvia|LV|LVA; Lithuania|LT|LTU; Norway|NO|NOR; Sweden|SE|SWE;
  United Kingdom|GB|GBR|UK|Great Britain|England|Scotland|Wales|Northern Ireland
Europe / Southern Europe:
  Albania|AL|ALB; Andorra|AD|AND; Bosnia and Herzegovina|BA|BIH|Bosnia; Croatia|HR|HRV;
  Gibraltar|GI|GIB; Greece|GR|GRC; Italy|IT|ITA; Kosovo|XK|XKX; Malta|MT|MLT; Montenegro|ME|MNE;
  North Macedonia|MK|MKD|Macedonia; Portugal|PT|PRT; San Marino|SM|SMR; Serbia|RS|SRB|Yugoslavia;
  Slovenia|SI|SVN; Spain|ES|ESP; Vatican|VA|VAT|Holy See
Europe / Western Europe:
  Austria|AT|AUT; Belgium|BE|BEL; France|FR|FRA; Germany|DE|DEU; Liechtenstein|LI|LIE;
  Luxembourg|LU|LUX; Monaco|MC|MCO; Netherlands|NL|NLD|Holland|The Netherlands;
  Switzerland|CH|CHE
Oceania / Australia and New Zealand:
  Australia|AU|AUS; New Zealand|NZ|NZL
Oceania / Pacific Islands:
  American Samoa|AS|ASM; Fiji|FJ|FJI; French Polynesia|PF|PYF; Guam|GU|GUM; Kiribati|KI|KIR;
  Marshall Islands|MH|MHL; Micronesia|FM|FSM; Nauru|NR|NRU; New Caledonia|NC|NCL; Palau|PW|PLW;
  Papua New Guinea|PG|PNG; Samoa|WS|WSM; Solomon Islands|SB|SLB; Tonga|TO|TON; Tuvalu|TV|TUV;
  Vanuatu|VU|VUT
`

const stateList = `
Northeast / New England:
  Connecticut|CT; Maine|ME; Massachusetts|MA; New Hampshire|NH; Rhode Island|RI; Vermont|VT
Northeast / Middle Atlantic:
  New Jersey|NJ; New York|NY; Pennsylvania|PA
Midwest / East North Central:
  Illinois|IL; Indiana|IN; Michigan|MI; Ohio|OH; Wisconsin|WI
Midwest / West North Central:
  Iowa|IA; Kansas|KS; Minnesota|MN; Missouri|MO; Nebraska|NE; North Dakota|ND; South Dakota|SD
South / South Atlantic:
  Delaware|DE; District of Columbia|DC; Florida|FL; Georgia|GA; Maryland|MD; North Carolina|NC;
  South Carolina|SC; Virginia|VA; West Virginia|WV
South / East South Central:
  Alabama|AL; Kentucky|KY; Mississippi|MS; Tennessee|TN
South / West South Central:
  Arkansas|AR; Louisiana|LA; Oklahoma|OK; Texas|TX
West / Mountain:
  Arizona|AZ; Colorado|CO; Idaho|ID; Montana|MT; Nevada|NV; New Mexico|NM; Utah|UT; Wyoming|WY
West / Pacific:
  Alaska|AK; California|CA; Hawaii|HI; Oregon|OR; Washington|WA
`

// places is a list by what its values may be written as.
type places struct {
	title string
	word  string // of a column name, which decides where two lists fit
	forms int    // ways in which all places are written: name, then codes
	list  []place
}

type place struct {
	region, part string
	written      []string // as name, codes, other names
}

var knownPlaces = []*places{
	newPlaces("countries by the regions of the United Nations", "country nation", 3, countryList),
	newPlaces("US states by the divisions of the Census Bureau", "state", 2, stateList),
}

func newPlaces(title, word string, forms int, text string) *places {
	p := &places{title: title, word: word, forms: forms}
	var region, part string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.Trim(line, " ;\n")
		if from, to, heads := strings.Cut(strings.TrimSuffix(line, ":"), " / "); heads {
			region, part = from, to
			continue
		}
		for item := range strings.SplitSeq(line, "; ") {
			p.list = append(p.list, place{region, part, strings.Split(item, "|")})
		}
	}
	return p
}

// placesAtLeast values have to be on a list, and eight in ten of all.
const placesAtLeast = 5

// byPlace groups values that are on a list, with the rest of the list in the
// form that most of the values have, so that places which come later are known.
func byPlace(name string, values []string) (paths [][]string, title string) {
	var fits []*places
	for _, p := range knownPlaces {
		if known, _ := p.find(values); len(known) >= placesAtLeast &&
			10*len(known) >= 8*len(values) {
			fits = append(fits, p)
		}
	}
	if len(fits) > 1 {
		var named []*places
		for _, p := range fits {
			for word := range strings.FieldsSeq(p.word) {
				if strings.Contains(strings.ToLower(name), word) {
					named = append(named, p)
				}
			}
		}
		fits = named
	}
	if len(fits) != 1 {
		return nil, ""
	}
	return fits[0].paths(values), fits[0].title
}

// find maps values to places, and counts the forms that they have.
func (p *places) find(values []string) (known map[string]*place, forms []int) {
	written := make(map[string][2]int)
	for i := range p.list {
		for form, text := range p.list[i].written {
			if _, taken := written[plain(text)]; !taken {
				written[plain(text)] = [2]int{i, form}
			}
		}
	}
	known, forms = make(map[string]*place), make([]int, p.forms)
	for _, v := range values {
		if at, ok := written[plain(v)]; ok {
			known[v] = &p.list[at[0]]
			if at[1] < p.forms {
				forms[at[1]]++
			}
		}
	}
	return known, forms
}

func (p *places) paths(values []string) [][]string {
	known, forms := p.find(values)
	form := 0
	for f, n := range forms {
		if n > forms[form] {
			form = f
		}
	}
	var paths [][]string
	there := make(map[string]bool)
	for i := range p.list {
		at := &p.list[i]
		for _, v := range values {
			if known[v] == at {
				paths, there[at.written[0]] = append(paths, []string{v, at.part, at.region}), true
			}
		}
		if !there[at.written[0]] {
			paths = append(paths, []string{at.written[form], at.part, at.region})
		}
	}
	for _, v := range values {
		if known[v] == nil {
			paths = append(paths, []string{v, "other", "other"})
		}
	}
	return paths
}
